package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/spf13/cobra"
)

// streams are the process's own, or a test's.
type streams struct {
	in       io.Reader
	out, err io.Writer
}

// The exit codes.
const (
	exitFailure     = 1
	exitUsage       = 2
	exitInterrupted = 130 // as a shell reports a program ended by Ctrl-C
)

// usageError is a mistake in the command line, as opposed to a failure of what it asked for.
type usageError struct{ error }

// Unwrap returns the mistake.
func (e usageError) Unwrap() error { return e.error }

// execute runs the command line and returns the exit code. What went wrong goes to the error stream, for people.
func execute(ctx context.Context, args []string, io streams) int {
	root := newRoot(io)
	root.SetArgs(args)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return 0
	}
	fmt.Fprintln(io.err, "pactwire: "+strings.TrimSpace(err.Error()))
	var usage usageError
	if errors.As(err, &usage) {
		fmt.Fprintln(io.err, "Try: pactwire --help")
		return exitUsage
	}
	return exitFailure
}

func newRoot(io streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "pactwire",
		Short: "Turns smart-contract ABIs into REST APIs and delivers the contracts' events to applications",
		Long: "Pactwire turns smart-contract ABIs into REST APIs and delivers the contracts' events to applications.\n\n" +
			"Try it with `pactwire dev`: it needs nothing but PostgreSQL's programs on this machine.",
		SilenceErrors: true, SilenceUsage: true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return usageError{fmt.Errorf("there is no command %q", args[0])}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	root.AddCommand(newDev(), newServe(), newMigrate(), newDeploy(), newListen(), newClient(), newVersion())
	root.AddCommand(newMember(), newMessage(), newKey(), newListener())
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	return root
}

// usage marks the mistakes that an argument check finds.
func usage(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(cmd *cobra.Command, args []string) error {
		if err := check(cmd, args); err != nil {
			return usageError{err}
		}
		return nil
	}
}

// interruptible returns a context that ends at the first Ctrl-C or SIGTERM. The second one ends the process at once.
func interruptible(parent context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancel(parent)
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	go func() {
		for first := true; ; first = false {
			select {
			case <-done:
				return
			case <-signals:
				if !first {
					os.Exit(exitInterrupted)
				}
				cancel()
			}
		}
	}()
	return ctx, func() {
		signal.Stop(signals)
		close(done)
		cancel()
	}
}
