// Pgserve runs a command with a PostgreSQL server for tests beside it: `pgserve go test ./...`. The command and everything it
// starts find the server through PACTWIRE_TEST_DATABASE_URL. The exit code is the command's.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"syscall"

	"github.com/pactwire/pactwire/internal/pgtest"
)

func main() {
	code, err := run(context.Background(), os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "pgserve:", err)
	}
	os.Exit(code)
}

func run(ctx context.Context, command []string) (int, error) {
	if len(command) == 0 {
		return 2, errors.New("usage: pgserve COMMAND [ARGUMENTS...]")
	}
	// Ctrl-C reaches the command by itself; the server goes after it. A request to end is passed on.
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	url, stop := os.Getenv(pgtest.EnvURL), func() {}
	if url == "" {
		var err error
		if url, stop, err = pgtest.StartServer(ctx, slog.New(slog.NewTextHandler(os.Stderr, nil))); err != nil {
			return 1, err
		}
	}
	defer stop()
	cmd := exec.CommandContext(ctx, command[0], command[1:]...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.Env = append(os.Environ(), pgtest.EnvURL+"="+url)
	if err := cmd.Start(); err != nil {
		return 1, fmt.Errorf("run %s: %w", command[0], err)
	}
	go func() {
		for s := range signals {
			if s == syscall.SIGTERM {
				_ = cmd.Process.Signal(s)
			}
		}
	}()
	var exit *exec.ExitError
	if err := cmd.Wait(); errors.As(err, &exit) {
		return max(exit.ExitCode(), 1), nil
	} else if err != nil {
		return 1, fmt.Errorf("run %s: %w", command[0], err)
	}
	return 0, nil
}
