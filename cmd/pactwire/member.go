package main

import (
	"fmt"
	"io"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/pactwire/pactwire/gen"
)

func newMember() *cobra.Command {
	r := &remote{}
	cmd := &cobra.Command{
		Use: "member", Short: "See and change the members of a network", Args: usage(cobra.NoArgs),
		Long: "See and change the members of the network that a namespace of a running service belongs to. Members stand in the pin contract on the chain: the\n" +
			"contract's admin (who deployed it) adds and removes them, and each member changes its own URL and key. The service signs; docs/network.md\n" +
			"tells how a member joins.",
		Example: "  pactwire member list\n  pactwire member add 0x5CbDd86a2FA8Dc4bDdd8a8f69dBa48572EeC07FB bob --member-url https://bob.example",
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	r.flags(cmd)
	cmd.AddCommand(memberList(r), memberAdd(r), memberRemove(r), memberUpdate(r), memberRotate(r))
	return cmd
}

func memberList(r *remote) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the members", Args: usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			client, err := r.client()
			if err != nil {
				return err
			}
			answer, err := client.ListMembersWithResponse(cmd.Context(), r.namespace)
			if err != nil {
				return fmt.Errorf("list the members: %w", err)
			}
			if answer.JSON200 == nil {
				return answerError(answer.Status(), answer.Body)
			}
			if asJSON {
				return printJSON(cmd, answer.JSON200)
			}
			return printMembers(cmd.OutOrStdout(), *answer.JSON200)
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

func printMembers(out io.Writer, members []gen.Member) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tACCOUNT\tURL\t")
	for _, m := range members {
		note, url := "", ""
		if m.Self != nil && *m.Self {
			note = "this node"
		}
		if m.URL != nil {
			url = *m.URL
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", m.Name, m.Account, url, note)
	}
	return w.Flush() //nolint:wrapcheck // a broken output
}

// answer is what the calls that change members have in common.
type answer interface {
	Status() string
	StatusCode() int
}

// settled prints what became of a change of the members.
func settled(cmd *cobra.Command, a answer, body []byte, op *gen.Invoked) error {
	if op == nil {
		return answerError(a.Status(), body)
	}
	if op.Status != "Succeeded" {
		reason := ""
		if op.Error != nil {
			reason = ": " + *op.Error
		}
		return fmt.Errorf("operation %s ended %s%s", op.ID, op.Status, reason)
	}
	hash := ""
	if op.TransactionHash != nil {
		hash = *op.TransactionHash
	}
	_, err := fmt.Fprintf(cmd.OutOrStdout(), "done with transaction %s\n", hash)
	return err //nolint:wrapcheck // a broken output
}

func memberAdd(r *remote) *cobra.Command {
	var url, key string
	cmd := &cobra.Command{
		Use: "add ACCOUNT NAME", Short: "Add a member; only the network's admin can", Args: usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := r.client()
			if err != nil {
				return err
			}
			a, err := client.AddMemberWithResponse(cmd.Context(), r.namespace, &gen.AddMemberParams{Confirm: confirmed()},
				gen.MemberInput{Account: args[0], Name: args[1], URL: given(url), Key: given(key)})
			if err != nil {
				return fmt.Errorf("add the member: %w", err)
			}
			return settled(cmd, a, a.Body, a.JSON200)
		},
	}
	cmd.Flags().StringVar(&url, "member-url", "", "`URL` at which the member can be reached")
	cmd.Flags().StringVar(&key, "key", "", "the admin's `account`, where it is not the service's default key")
	return cmd
}

func memberRemove(r *remote) *cobra.Command {
	var key string
	cmd := &cobra.Command{
		Use: "remove ACCOUNT|NAME", Short: "Remove a member; only the network's admin can", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := r.client()
			if err != nil {
				return err
			}
			a, err := client.RemoveMemberWithResponse(cmd.Context(), r.namespace, args[0], &gen.RemoveMemberParams{Confirm: confirmed(), Key: given(key)})
			if err != nil {
				return fmt.Errorf("remove the member: %w", err)
			}
			return settled(cmd, a, a.Body, a.JSON200)
		},
	}
	cmd.Flags().StringVar(&key, "key", "", "the admin's `account`, where it is not the service's default key")
	return cmd
}

func memberUpdate(r *remote) *cobra.Command {
	return &cobra.Command{
		Use: "update URL", Short: "Tell the network this member's new URL", Args: usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := r.client()
			if err != nil {
				return err
			}
			a, err := client.UpdateSelfWithResponse(cmd.Context(), r.namespace, &gen.UpdateSelfParams{Confirm: confirmed()}, gen.MemberUpdate{URL: args[0]})
			if err != nil {
				return fmt.Errorf("update this member: %w", err)
			}
			return settled(cmd, a, a.Body, a.JSON200)
		},
	}
}

func memberRotate(r *remote) *cobra.Command {
	return &cobra.Command{
		Use: "rotate NEW-ACCOUNT", Short: "Move this member to another account", Args: usage(cobra.ExactArgs(1)),
		Long: "Move this member to another account. Its name and its definitions stay its own. The service cannot broadcast with the old key any more: start it anew\n" +
			"with the new one.",
		RunE: func(cmd *cobra.Command, args []string) error {
			client, err := r.client()
			if err != nil {
				return err
			}
			a, err := client.RotateSelfWithResponse(cmd.Context(), r.namespace, &gen.RotateSelfParams{Confirm: confirmed()}, gen.MemberRotation{Account: args[0]})
			if err != nil {
				return fmt.Errorf("rotate this member's key: %w", err)
			}
			return settled(cmd, a, a.Body, a.JSON200)
		},
	}
}

func confirmed() *bool {
	yes := true
	return &yes
}

// given is nil for a flag that was not given.
func given(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}
