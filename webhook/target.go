package webhook

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"strings"
	"syscall"
	"time"

	pactwire "github.com/pactwire/pactwire"
)

const dialTimeout = 10 * time.Second

// Lookup resolves a host's name.
type Lookup func(ctx context.Context, host string) ([]netip.Addr, error)

// Targets says where requests may go.
type Targets struct {
	AllowPrivate bool   // also to this machine and to private networks
	Lookup       Lookup // nil: the system's resolver
}

// refused is why a request does not go out.
type refused struct{ address netip.Addr }

// Error implements error.
func (r *refused) Error() string {
	return fmt.Sprintf("%s is an address of this machine or of a private network; webhooks.allow-private allows it", r.address)
}

// internal are the networks that are not the Internet, beside those that package netip knows; addresses of IPv4 within IPv6 are looked at as well.
var internal = prefixes("0.0.0.0/8", "100.64.0.0/10", "192.0.0.0/24", "198.18.0.0/15", "240.0.0.0/4", "64:ff9b:1::/48", "100::/64", "2001::/32", "fec0::/10")

// embedding are the networks of IPv6 whose addresses hold one of IPv4, with its first byte.
var embedding = map[netip.Prefix]int{netip.MustParsePrefix("64:ff9b::/96"): 12, netip.MustParsePrefix("2002::/16"): 2, netip.MustParsePrefix("::/96"): 12}

func prefixes(list ...string) []netip.Prefix {
	out := make([]netip.Prefix, len(list))
	for i, p := range list {
		out[i] = netip.MustParsePrefix(p)
	}
	return out
}

// private tells whether an address is none of the Internet.
func private(a netip.Addr) bool {
	a = a.Unmap().WithZone("")
	if !a.IsValid() || a.IsLoopback() || a.IsPrivate() || a.IsLinkLocalUnicast() || a.IsMulticast() || a.IsUnspecified() {
		return true
	}
	for _, p := range internal {
		if p.Contains(a) {
			return true
		}
	}
	if a.Is6() {
		bytes := a.As16()
		for p, at := range embedding {
			if p.Contains(a) {
				return private(netip.AddrFrom4([4]byte(bytes[at : at+4])))
			}
		}
	}
	return false
}

// CheckURL refuses an address that is private by how it is written. It is for an early answer: what counts is checked when the address is dialled.
func (t Targets) CheckURL(address string) error {
	u, err := url.Parse(address)
	if err != nil || t.AllowPrivate {
		return nil // what is no address is refused elsewhere
	}
	host := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	a, err := netip.ParseAddr(host)
	if host == "localhost" || strings.HasSuffix(host, ".localhost") || err == nil && private(a) {
		return pactwire.Invalid("options.url", "leads to this machine or to a private network, which the configuration does not allow (webhooks.allow-private)")
	}
	return nil
}

// control is asked with the address that is about to be dialled.
func (t Targets) control(_, address string, _ syscall.RawConn) error {
	a, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("read the address to dial: %w", err)
	}
	if !t.AllowPrivate && private(a.Addr()) {
		return &refused{a.Addr()}
	}
	return nil
}

// dial resolves a host and connects to the first of its addresses that answers and is allowed.
func (t Targets) dial(ctx context.Context, network, address string) (net.Conn, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, fmt.Errorf("read the address to dial: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, dialTimeout)
	defer cancel()
	dialer := net.Dialer{Control: t.control}
	if t.Lookup == nil {
		return dialer.DialContext(ctx, network, address) //nolint:wrapcheck // worded by failure
	}
	addresses, err := t.Lookup(ctx, host)
	if err != nil {
		return nil, fmt.Errorf("look up %s: %w", host, err)
	}
	failed := []error{errors.New("no address answers")}
	for _, a := range addresses {
		conn, err := dialer.DialContext(ctx, network, net.JoinHostPort(a.String(), port))
		if err == nil {
			return conn, nil
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}
