package devnet

import (
	"context"
	"log/slog"

	gethlog "github.com/ethereum/go-ethereum/log"
)

// logBridge makes go-ethereum's logger, of which there is one per process, write to ours. What a node operator wants to read
// at level info is noise beside an application, so it all goes to debug; errors become warnings.
func logBridge(log *slog.Logger) {
	// go-ethereum makes its own logger type the default of log/slog as well; hidden inside another type it does not.
	gethlog.SetDefault(struct{ gethlog.Logger }{gethlog.NewLogger(quietHandler{log.Handler()})})
}

type quietHandler struct{ next slog.Handler }

func quiet(level slog.Level) slog.Level {
	if level >= slog.LevelError {
		return slog.LevelWarn
	}
	return slog.LevelDebug
}

// Enabled implements slog.Handler. Trace and debug messages of the node are never wanted: there are thousands a second.
func (h quietHandler) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelInfo && h.next.Enabled(ctx, quiet(level))
}

// Handle implements slog.Handler.
func (h quietHandler) Handle(ctx context.Context, record slog.Record) error {
	record = record.Clone()
	record.Level = quiet(record.Level)
	record.Message = "chain: " + record.Message
	return h.next.Handle(ctx, record)
}

// WithAttrs implements slog.Handler.
func (h quietHandler) WithAttrs(attrs []slog.Attr) slog.Handler {
	return quietHandler{h.next.WithAttrs(attrs)}
}

// WithGroup implements slog.Handler.
func (h quietHandler) WithGroup(name string) slog.Handler {
	return quietHandler{h.next.WithGroup(name)}
}
