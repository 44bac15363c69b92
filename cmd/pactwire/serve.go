package main

import (
	"github.com/spf13/cobra"

	"github.com/pactwire/pactwire/app"
)

func newServe() *cobra.Command {
	cmd := &cobra.Command{
		Use: "serve", Short: "Run the service with a database and a chain that are elsewhere", Args: usage(cobra.NoArgs),
		Long: "Run the service for production: the database, the chain's node and the signing keys are given, nothing is embedded.\n\n" +
			"Each flag has a twin in the environment and in the YAML file; flags win over the environment, and that over the file. The file also\n" +
			"takes several chains and namespaces.",
		Example: "  pactwire serve --database-url postgres://user@host/pactwire --rpc-url wss://node:8546 --keystore key.json --password-file password",
		RunE: func(cmd *cobra.Command, _ []string) error {
			cfg, log, done, err := configure(cmd, app.ModeServe)
			if err != nil || done {
				return err
			}
			a, err := app.New(cmd.Context(), cfg, app.Options{Version: readBuildInfo().Version}, log)
			if err != nil {
				return err
			}
			keepSmall(cmd.Context())
			log.InfoContext(cmd.Context(), "serving", "urls", a.URLs())
			return a.Run(cmd.Context())
		},
	}
	app.AddFlags(cmd.Flags(), app.ModeServe)
	cmd.Flags().Bool(printConfig, false, "print the configuration in effect, without secrets, and stop")
	return cmd
}
