package store

import (
	"context"
	"fmt"

	"github.com/jmoiron/sqlx"
)

// Member is one party of a namespace's network, as registered in the pin contract of its chain.
type Member struct {
	Namespace string `db:"namespace"`
	Account   []byte `db:"account"`
	Name      string `db:"name"`
	URL       string `db:"url"`
	Active    bool   `db:"active"` // false: it was removed, or has moved to another account
	Block     int64  `db:"block"`  // of the last change
}

// Members returns the active members of the namespace's network, by name.
func (db *DB) Members(ctx context.Context, namespace string) ([]Member, error) {
	members := []Member{}
	err := db.db.SelectContext(ctx, &members, `
		SELECT namespace, account, name, url, active, block FROM members WHERE namespace = $1 AND active ORDER BY name, account`, namespace)
	return members, wrap(err, "read the members of namespace "+namespace)
}

// Member returns one active member by its account.
func (db *DB) Member(ctx context.Context, namespace string, account []byte) (Member, error) {
	var m Member
	err := db.db.GetContext(ctx, &m, `
		SELECT namespace, account, name, url, active, block FROM members WHERE namespace = $1 AND account = $2 AND active`, namespace, account)
	return m, missing(err, "member", Account(account), "read member "+Account(account))
}

// MemberByName returns one active member by its name.
func (db *DB) MemberByName(ctx context.Context, namespace, name string) (Member, error) {
	var m Member
	err := db.db.GetContext(ctx, &m, `
		SELECT namespace, account, name, url, active, block FROM members WHERE namespace = $1 AND name = $2 AND active ORDER BY account LIMIT 1`, namespace, name)
	return m, missing(err, "member", name, "read member "+name)
}

// MemberChange is one log of the pin contract about its members. Exactly one of Set, From and Removed is given.
type MemberChange struct {
	Set      []byte // this account is a member
	Name     string
	URL      string
	From, To []byte // the member of the account From has moved to the account To
	Removed  []byte // this account is no longer a member
}

// ApplyMemberChange applies one log about members and moves the namespace's position behind it.
func (db *DB) ApplyMemberChange(ctx context.Context, lease Lease, namespace string, pin *Pin, change MemberChange) error {
	return db.inTx(ctx, "apply a change of the members of namespace "+namespace, func(tx *sqlx.Tx) error {
		if fresh, err := settlePin(ctx, tx, lease, namespace, pin); err != nil || !fresh {
			return err
		}
		switch {
		case change.Set != nil:
			return setMember(ctx, tx, Member{
				Namespace: namespace, Account: change.Set, Name: change.Name, URL: change.URL, Active: true, Block: pin.BlockNumber,
			})
		case change.From != nil:
			return rotateMember(ctx, tx, namespace, change.From, change.To, pin.BlockNumber)
		default:
			_, err := tx.ExecContext(ctx, `UPDATE members SET active = false, block = $3 WHERE namespace = $1 AND account = $2`,
				namespace, change.Removed, pin.BlockNumber)
			if err != nil {
				return fmt.Errorf("remove the member: %w", err)
			}
			return nil
		}
	})
}

func setMember(ctx context.Context, tx *sqlx.Tx, m Member) error {
	_, err := tx.ExecContext(ctx, `
		INSERT INTO members (namespace, account, name, url, active, block) VALUES ($1, $2, $3, $4, $5, $6)
		ON CONFLICT (namespace, account) DO UPDATE SET name = excluded.name, url = excluded.url, active = excluded.active, block = excluded.block`,
		m.Namespace, m.Account, m.Name, m.URL, m.Active, m.Block)
	if err != nil {
		return fmt.Errorf("write the member: %w", err)
	}
	return nil
}

// rotateMember moves a member to another account. The definitions that it made stay its own.
func rotateMember(ctx context.Context, tx *sqlx.Tx, namespace string, from, to []byte, block int64) error {
	var old []Member
	err := tx.SelectContext(ctx, &old, `
		UPDATE members SET active = false, block = $3 WHERE namespace = $1 AND account = $2
		RETURNING namespace, account, name, url, active, block`, namespace, from, block)
	if err != nil {
		return fmt.Errorf("read the member: %w", err)
	}
	if len(old) == 0 {
		return nil // the contract lets only a member rotate; a log of another contract version must not stop the rest
	}
	m := old[0]
	m.Account, m.Active = to, true
	if err := setMember(ctx, tx, m); err != nil {
		return err
	}
	for _, table := range []string{"interfaces", "apis"} {
		_, err := tx.ExecContext(ctx, `UPDATE `+table+` SET author = $3 WHERE namespace = $1 AND author = $2 AND state <> 'ready'`,
			namespace, Account(from), Account(to))
		if err != nil {
			return fmt.Errorf("hand the definitions over: %w", err)
		}
	}
	return nil
}

// Account is how an account stands in messages: 0x and lower-case hex.
func Account(address []byte) string { return fmt.Sprintf("0x%x", address) }
