package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pactwire/pactwire/gen"
)

func newListener() *cobra.Command {
	cmd := &cobra.Command{Use: "listener", Short: "Look at the listeners of contract events", Args: usage(cobra.NoArgs), RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() }}
	var service remote
	service.flags(cmd)
	var watch bool
	var interval time.Duration
	status := &cobra.Command{
		Use: "status NAME", Short: "Show how far a listener has read the chain", Args: usage(cobra.ExactArgs(1)),
		Long: "Show how far a listener has read the chain, by its name or its id. With --watch it shows the catch-up with its rate and the time left until the\n" +
			"listener is live: as a bar on a terminal, as lines elsewhere.",
		Example: "  pactwire listener status transfers --watch",
		RunE: func(cmd *cobra.Command, args []string) error {
			if interval <= 0 {
				return usageError{errors.New("--interval must be more than nothing")}
			}
			client, err := service.client()
			if err != nil {
				return err
			}
			read := func(ctx context.Context) (gen.ListenerStatus, error) {
				with := true
				r, err := client.GetContractListenerWithResponse(ctx, service.namespace, args[0], &gen.GetContractListenerParams{FetchStatus: &with})
				if err != nil {
					return gen.ListenerStatus{}, fmt.Errorf("ask the service: %w", err)
				}
				if r.JSON200 == nil || r.JSON200.Status == nil {
					return gen.ListenerStatus{}, answerError(r.Status(), r.Body)
				}
				return *r.JSON200.Status, nil
			}
			if !watch {
				s, err := read(cmd.Context())
				if err != nil {
					return err
				}
				return printJSON(cmd, s)
			}
			p := progress{out: cmd.OutOrStdout(), bar: terminal(cmd.OutOrStdout())}
			return p.watch(cmd.Context(), interval, read)
		},
	}
	status.Flags().BoolVar(&watch, "watch", false, "go on until the listener is live")
	status.Flags().DurationVar(&interval, "interval", time.Second, "`time` between two looks")
	cmd.AddCommand(status)
	return cmd
}

// terminal tells whether what is written there is seen on a terminal.
func terminal(out io.Writer) bool {
	f, ok := out.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// progress shows a catch-up.
type progress struct {
	out   io.Writer
	bar   bool
	began time.Time
	first gen.ListenerStatus // at the first look
}

// watch looks until the listener is live or ctx ends.
func (p *progress) watch(ctx context.Context, interval time.Duration, read func(context.Context) (gen.ListenerStatus, error)) error {
	for {
		s, err := read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if err != nil {
			return err
		}
		if p.began.IsZero() {
			p.began, p.first = time.Now(), s
		}
		live := s.Mode != "catchup"
		line := p.line(s, time.Since(p.began))
		switch {
		case p.bar && live:
			line = "\r\033[K" + line + "\n"
		case p.bar:
			line = "\r\033[K" + line
		default:
			line += "\n"
		}
		if _, err := io.WriteString(p.out, line); err != nil {
			return fmt.Errorf("show the progress: %w", err)
		}
		if live {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(interval):
		}
	}
}

// line words one look.
func (p *progress) line(s gen.ListenerStatus, took time.Duration) string {
	checkpoint, lag := number(s.Checkpoint), number(s.Lag)
	if s.Mode != "catchup" {
		return fmt.Sprintf("live at block %d, %d events", checkpoint-1, s.Events)
	}
	share := 0.0
	if checkpoint+lag > 0 {
		share = float64(checkpoint) / float64(checkpoint+lag)
	}
	blocks, events := float64(checkpoint-number(p.first.Checkpoint)), float64(s.Events-p.first.Events)
	rate, left := "", ""
	if seconds := took.Seconds(); seconds > 0 && blocks > 0 {
		rate = fmt.Sprintf(", %.0f blocks/s, %.0f events/s", blocks/seconds, events/seconds)
		left = fmt.Sprintf(", %s left", time.Duration(float64(lag)/blocks*float64(took)).Round(time.Second))
	} else if s.SecondsLeft != nil {
		left = fmt.Sprintf(", about %s left", time.Duration(float64(*s.SecondsLeft)*float64(time.Second)).Round(time.Second))
	}
	text := fmt.Sprintf("%3.0f%%  block %d of %d, %d events%s%s", 100*share, checkpoint, checkpoint+lag, s.Events, rate, left)
	if p.bar {
		const width = 30
		done := int(share * width)
		text = "[" + strings.Repeat("=", done) + strings.Repeat(" ", width-done) + "] " + text
	}
	return text
}

func number(p *int64) int64 {
	if p == nil {
		return 0
	}
	return *p
}
