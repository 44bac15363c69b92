package main

import (
	"context"
	"crypto/ecdsa"
	"errors"
	"fmt"
	"log/slog"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pactwire/pactwire/app"
	"github.com/pactwire/pactwire/devnet"
)

const (
	devDatabase = "pactwire"
	// devStop is how long the embedded database may take to end cleanly; nothing is lost when it is cut off.
	devStop = 4 * time.Second
)

func newDev() *cobra.Command {
	cmd := &cobra.Command{
		Use: "dev", Short: "Run everything on this machine: service, chain and database", Args: usage(cobra.NoArgs),
		Long: "Run the service with an embedded chain and a private PostgreSQL, for development. Everything is kept in the data folder, and the next start\n" +
			"goes on where this one ended, however it ended.\n\n" +
			"Each flag has a twin in the environment and in the YAML file; flags win over the environment, and that over the file.",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, done, err := configure(cmd, app.ModeDev)
			if err != nil || done {
				return err
			}
			members, _ := cmd.Flags().GetInt("members")
			if err := checkMembers(cfg, members); err != nil {
				return err
			}
			return runDev(cmd, cfg, members, log)
		},
	}
	app.AddFlags(cmd.Flags(), app.ModeDev)
	addMembersFlag(cmd)
	cmd.Flags().Bool(printConfig, false, "print the configuration in effect, without secrets, and stop")
	return cmd
}

// runDev owns what is embedded: it is stopped after the service, in reverse order of the start.
func runDev(cmd *cobra.Command, cfg *app.Config, members int, log *slog.Logger) (err error) {
	ctx := cmd.Context()
	tolerateGarbage()
	dir, err := filepath.Abs(cfg.DataDir)
	if err != nil {
		return fmt.Errorf("find the data folder: %w", err)
	}
	lock, err := lockDataDir(dir)
	if err != nil {
		return err
	}
	defer lock.Close()
	accounts, err := devnet.Accounts()
	if err != nil {
		return fmt.Errorf("derive the dev accounts: %w", err)
	}
	d := &devServers{cfg: cfg, dir: dir, accounts: accounts, log: log}
	defer func() { err = errors.Join(err, d.stop(context.WithoutCancel(ctx))) }()
	a, err := app.New(ctx, cfg, app.Options{Version: readBuildInfo().Version, Embedded: d.start}, log)
	if err != nil {
		return err
	}
	group, running := errgroup.WithContext(ctx)
	group.Go(func() error { return a.Run(running) })
	group.Go(func() error {
		select {
		case <-running.Done():
			return nil
		case <-a.Ready():
		}
		others, err := d.startMembers(running, group, a.URLs()[0], members)
		if err != nil {
			return err
		}
		if err := printWelcome(cmd.OutOrStdout(), a.URLs()[0], d); err != nil {
			return fmt.Errorf("print the welcome: %w", err)
		}
		if err := d.printMembers(cmd.OutOrStdout(), a.URLs()[0], others); err != nil {
			return fmt.Errorf("print the members: %w", err)
		}
		return d.watch(running)
	})
	return group.Wait()
}

// devServers is what is embedded.
type devServers struct {
	cfg      *app.Config
	dir      string
	accounts []devnet.Account
	log      *slog.Logger

	chain    *devnet.Chain
	postgres *devnet.Postgres
}

// start starts chain and database side by side.
func (d *devServers) start(ctx context.Context) (app.Embedded, error) {
	embedded := app.Embedded{Keys: []*ecdsa.PrivateKey{d.accounts[0].Key}}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() (err error) {
		d.chain, err = devnet.StartChain(ctx, devnet.ChainConfig{Dir: filepath.Join(d.dir, "chain"), Listen: d.cfg.RPCListen}, d.log)
		return err
	})
	if d.cfg.DatabaseURL == "" {
		group.Go(func() (err error) {
			if d.postgres, err = devnet.StartPostgres(ctx, devnet.PostgresConfig{Dir: filepath.Join(d.dir, "postgres")}, d.log); err != nil {
				return err
			}
			if err := d.postgres.EnsureDatabase(ctx, devDatabase); err != nil {
				return err
			}
			embedded.DatabaseURL, embedded.SoleUser = d.postgres.URL(devDatabase), true
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return app.Embedded{}, err
	}
	embedded.RPCURLs, embedded.Attach = []string{d.chain.WSURL()}, d.chain.Attach
	return embedded, nil
}

// watch fails when the private database ends by itself, so that somebody who starts the process anew notices.
func (d *devServers) watch(ctx context.Context) error {
	if d.postgres == nil {
		return nil
	}
	select {
	case <-ctx.Done():
		return nil
	case <-d.postgres.Done():
		if ctx.Err() != nil {
			return nil
		}
		return fmt.Errorf("the private PostgreSQL has ended; %s says why", filepath.Join(d.dir, "postgres", "postgres.log"))
	}
}

func (d *devServers) stop(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, devStop)
	defer cancel()
	var errs []error
	if d.chain != nil {
		errs = append(errs, d.chain.Stop())
	}
	if d.postgres != nil {
		errs = append(errs, d.postgres.Stop(ctx))
	}
	return errors.Join(errs...)
}
