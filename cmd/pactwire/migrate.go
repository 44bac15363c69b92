package main

import (
	"fmt"
	"os"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pactwire/pactwire/app"
	"github.com/pactwire/pactwire/migrations"
)

func newMigrate() *cobra.Command {
	cmd := &cobra.Command{
		Use: "migrate", Short: "Bring the database's schema up to date, or look at it",
		Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.PersistentFlags().String("database-url", "", "PostgreSQL connection `URL` (PACTWIRE_DATABASE_URL)")
	cmd.PersistentFlags().String("config", "", "YAML `file` with settings (PACTWIRE_CONFIG)")
	cmd.AddCommand(
		&cobra.Command{
			Use: "up", Short: "Bring the schema to the newest version", Args: usage(cobra.NoArgs),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return migrate(cmd, migrations.Up)
			},
		},
		&cobra.Command{
			Use: "down STEPS", Short: "Take back that many migrations, with the data that they hold", Args: usage(cobra.ExactArgs(1)),
			RunE: func(cmd *cobra.Command, args []string) error {
				steps, err := strconv.ParseUint(args[0], 10, 16)
				if err != nil || steps == 0 {
					return usageError{fmt.Errorf("the number of migrations to take back must be 1 or more, not %q", args[0])}
				}
				return migrate(cmd, func(url string) (migrations.Version, error) { return migrations.Down(url, int(steps)) })
			},
		},
		&cobra.Command{
			Use: "status", Short: "Show the schema's version", Args: usage(cobra.NoArgs),
			RunE: func(cmd *cobra.Command, _ []string) error {
				return migrate(cmd, migrations.Current)
			},
		},
	)
	return cmd
}

func migrate(cmd *cobra.Command, do func(url string) (migrations.Version, error)) error {
	url, err := app.LoadDatabaseURL(givenFlags(cmd), os.Environ())
	if err != nil {
		return err
	}
	version, err := do(url)
	if err != nil {
		return err
	}
	latest, err := migrations.Latest()
	if err != nil {
		return err
	}
	state := "up to date"
	switch {
	case version.Dirty:
		state = "a migration stopped half way; a person must look"
	case version.Number < latest:
		state = fmt.Sprintf("the newest is %d: run `pactwire migrate up`", latest)
	case version.Number > latest:
		state = fmt.Sprintf("this binary knows only %d: the database belongs to a newer pactwire", latest)
	}
	if _, err := fmt.Fprintf(cmd.OutOrStdout(), "schema version %d (%s)\n", version.Number, state); err != nil {
		return fmt.Errorf("print the version: %w", err)
	}
	return nil
}
