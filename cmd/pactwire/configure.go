package main

import (
	"io"
	"log/slog"
	"os"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pactwire/pactwire/app"
)

const printConfig = "print-config"

// configure loads the configuration of a mode and makes the log. done means that the configuration was only to be shown.
func configure(cmd *cobra.Command, mode app.Mode) (cfg *app.Config, log *slog.Logger, done bool, err error) {
	cfg, err = app.Load(mode, givenFlags(cmd), os.Environ())
	if err != nil {
		return nil, nil, false, err
	}
	if show, _ := cmd.Flags().GetBool(printConfig); show {
		return nil, nil, true, cfg.Print(cmd.OutOrStdout())
	}
	return cfg, newLog(cfg, cmd.ErrOrStderr()), false, nil
}

// givenFlags are the flags that stand on the command line, by name.
func givenFlags(cmd *cobra.Command) map[string]string {
	given := map[string]string{}
	cmd.Flags().Visit(func(f *pflag.Flag) { given[f.Name] = f.Value.String() })
	return given
}

func newLog(cfg *app.Config, w io.Writer) *slog.Logger {
	options := &slog.HandlerOptions{Level: cfg.LogLevel}
	if cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
