package main

import (
	"cmp"
	"context"
	"crypto/ecdsa"
	"fmt"
	"io"
	"log/slog"
	"net"
	"strconv"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"

	"github.com/pactwire/pactwire/app"
	"github.com/pactwire/pactwire/devnet"
	"github.com/pactwire/pactwire/gen"
)

// maxMembers leaves some of the funded accounts to people.
const maxMembers = 8

// checkMembers refuses what does not go with several members in one process.
func checkMembers(cfg *app.Config, members int) error {
	switch {
	case members < 1 || members > maxMembers:
		return usageError{fmt.Errorf("--members must be 1 to %d", maxMembers)}
	case members == 1:
		return nil
	case cfg.DatabaseURL != "":
		return usageError{fmt.Errorf("--members goes with the private PostgreSQL only, which gives each member a database of its own; leave --database-url out")}
	case cfg.Auth.Enabled():
		return usageError{fmt.Errorf("--members does not go with authentication")}
	case len(cfg.Chains) != 1 || len(cfg.Namespaces) != 1:
		return usageError{fmt.Errorf("--members goes with one chain and one namespace")}
	}
	return nil
}

// devMember is one more member beside the first, with a database, an account and an address of its own.
type devMember struct {
	name, url, database string
	account             devnet.Account
	app                 *app.App
}

// startMembers registers the other members with the first one's service, starts them, and returns when all are ready.
func (d *devServers) startMembers(ctx context.Context, group *errgroup.Group, first string, members int) ([]devMember, error) {
	if members < 2 {
		return nil, nil
	}
	client, err := gen.NewClientWithResponses(first + "/api/v1")
	if err != nil {
		return nil, fmt.Errorf("make the client: %w", err)
	}
	namespace := d.cfg.Namespaces[0].Name
	status, err := client.GetStatusWithResponse(ctx, namespace)
	if err != nil {
		return nil, fmt.Errorf("ask for the pin contract: %w", err)
	}
	if status.JSON200 == nil || status.JSON200.Chain.PinContract == nil {
		return nil, fmt.Errorf("ask for the pin contract: %w", answerError(status.Status(), status.Body))
	}
	pin := common.HexToAddress(*status.JSON200.Chain.PinContract)
	var all []devMember
	for i := 2; i <= members; i++ {
		m := devMember{
			name: fmt.Sprintf("%s%d", d.cfg.OrgName, i), database: fmt.Sprintf("%s_member_%d", devDatabase, i),
			account: d.accounts[len(d.accounts)-i+1], // from the end: people take those at the beginning
		}
		cfg, err := d.memberConfig(i, m, pin)
		if err != nil {
			return nil, err
		}
		if err := d.postgres.EnsureDatabase(ctx, m.database); err != nil {
			return nil, err
		}
		m.app, err = app.New(ctx, cfg, app.Options{Version: readBuildInfo().Version, Embedded: func(context.Context) (app.Embedded, error) {
			return app.Embedded{
				DatabaseURL: d.postgres.URL(m.database), SoleUser: true, RPCURLs: []string{d.chain.WSURL()}, Attach: d.chain.Attach, Keys: []*ecdsa.PrivateKey{m.account.Key},
			}, nil
		}}, d.log.With(slog.String("member", m.name)))
		if err != nil {
			return nil, err
		}
		m.url = m.app.URLs()[0]
		group.Go(func() error { return m.app.Run(ctx) })
		if err := register(ctx, client, namespace, m); err != nil {
			return nil, err
		}
		all = append(all, m)
	}
	for _, m := range all {
		select {
		case <-ctx.Done():
			return nil, nil
		case <-m.app.Ready():
		}
	}
	return all, nil
}

// memberConfig is the first member's configuration with what is another member's own.
func (d *devServers) memberConfig(i int, m devMember, pin common.Address) (*app.Config, error) {
	cfg := *d.cfg
	cfg.OrgName, cfg.PublicURL = m.name, nil
	cfg.Chains = append([]app.ChainConfig(nil), d.cfg.Chains...)
	cfg.Chains[0].PinContract, cfg.Chains[0].PinBlock = &pin, 0
	host, port, err := net.SplitHostPort(d.cfg.Listen[0])
	if err != nil {
		return nil, fmt.Errorf("read the address to listen at: %w", err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		return nil, fmt.Errorf("read the address to listen at: %w", err)
	}
	if number > 0 { // 0 takes a free one each time
		number += i - 1
	}
	cfg.Listen = []string{net.JoinHostPort(host, strconv.Itoa(number))}
	return &cfg, nil
}

// register makes the account a member; one that is a member already stays one.
func register(ctx context.Context, client *gen.ClientWithResponses, namespace string, m devMember) error {
	answer, err := client.AddMemberWithResponse(ctx, namespace, &gen.AddMemberParams{Confirm: confirmed()},
		gen.MemberInput{Account: m.account.Address.Hex(), Name: m.name, URL: &m.url})
	if err != nil {
		return fmt.Errorf("register member %s: %w", m.name, err)
	}
	if answer.JSON200 != nil && answer.JSON200.Status == "Succeeded" || strings.Contains(string(answer.Body), `"already_a_member"`) {
		return nil
	}
	return fmt.Errorf("register member %s: %w", m.name, answerError(answer.Status(), answer.Body))
}

// printMembers tells where the members are.
func (d *devServers) printMembers(w io.Writer, first string, members []devMember) error {
	if len(members) == 0 {
		return nil
	}
	var b strings.Builder
	b.WriteString("\nMembers of the network, each with a database of its own:\n")
	line := func(name, url, account, database string) {
		fmt.Fprintf(&b, "  %-12s  %s  %s  psql %s\n", cmp.Or(name, "-"), url, account, quote(d.postgres.URL(database)))
	}
	line(d.cfg.OrgName, first, d.accounts[0].Address.Hex(), devDatabase)
	for _, m := range members {
		line(m.name, m.url, m.account.Address.Hex(), m.database)
	}
	b.WriteString("\ndocs/network.md tells what to try. What one member broadcasts, all see in the same order.\n")
	_, err := io.WriteString(w, b.String())
	return err //nolint:wrapcheck // the caller says what was printed
}

// addMembersFlag defines --members.
func addMembersFlag(cmd *cobra.Command) {
	cmd.Flags().Int("members", 1, "run a network of this `number` of members, each with its own database, account and port, on one chain")
}
