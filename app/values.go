package app

import (
	"errors"
	"fmt"
	"log/slog"
	"math/big"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/ethereum/go-ethereum/common"
)

// value reads a setting from text, and writes it as text.
type value struct {
	set func(string) error
	get func() string
}

func text(p *string) value {
	return value{func(s string) error { *p = s; return nil }, func() string { return *p }}
}

func list(p *[]string) value {
	return value{func(s string) error {
		*p = nil
		for part := range strings.SplitSeq(s, ",") {
			if part = strings.TrimSpace(part); part != "" {
				*p = append(*p, part)
			}
		}
		return nil
	}, func() string { return strings.Join(*p, ",") }}
}

func choice(p *string, allowed ...string) value {
	return value{func(s string) error {
		if !slices.Contains(allowed, s) {
			return fmt.Errorf("%q is none of %s", s, strings.Join(allowed, ", "))
		}
		*p = s
		return nil
	}, func() string { return *p }}
}

func boolean(p *bool) value {
	return value{func(s string) (err error) {
		if *p, err = strconv.ParseBool(s); err != nil {
			return fmt.Errorf("%q is neither true nor false", s)
		}
		return nil
	}, func() string { return strconv.FormatBool(*p) }}
}

func optionalBoolean(p **bool) value {
	return value{func(s string) error {
		if s == "" {
			*p = nil
			return nil
		}
		var b bool
		if err := boolean(&b).set(s); err != nil {
			return err
		}
		*p = &b
		return nil
	}, func() string {
		if *p == nil {
			return ""
		}
		return strconv.FormatBool(**p)
	}}
}

func level(p *slog.Level) value {
	return value{func(s string) error {
		if !slices.Contains([]string{"debug", "info", "warn", "error"}, strings.ToLower(s)) {
			return fmt.Errorf("%q is none of debug, info, warn, error", s)
		}
		return p.UnmarshalText([]byte(s)) //nolint:wrapcheck // cannot fail here
	}, func() string { return strings.ToLower(p.String()) }}
}

func count(p *int64) value {
	return value{func(s string) error {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil || n < 0 {
			return fmt.Errorf("%q is no number from 0 up", s)
		}
		*p = n
		return nil
	}, func() string { return strconv.FormatInt(*p, 10) }}
}

func optionalCount(p **int64) value {
	return value{func(s string) error {
		if s == "" {
			*p = nil
			return nil
		}
		var n int64
		if err := count(&n).set(s); err != nil {
			return err
		}
		*p = &n
		return nil
	}, func() string {
		if *p == nil {
			return ""
		}
		return strconv.FormatInt(**p, 10)
	}}
}

// optional makes a value of one that may be left out.
func optional[T any](p **T, inner func(*T) value) value {
	return value{func(s string) error {
		*p = nil
		if s == "" {
			return nil
		}
		var v T
		if err := inner(&v).set(s); err != nil {
			return err
		}
		*p = &v
		return nil
	}, func() string {
		if *p == nil {
			return ""
		}
		return inner(*p).get()
	}}
}

func optionalDuration(p **time.Duration) value { return optional(p, duration) }

// duration takes a number as seconds, as the Request-Timeout header does.
func duration(p *time.Duration) value {
	return value{func(s string) error {
		d, err := time.ParseDuration(s)
		if seconds, numErr := strconv.ParseUint(s, 10, 31); numErr == nil {
			d, err = time.Duration(seconds)*time.Second, nil
		}
		if err != nil || d <= 0 {
			return fmt.Errorf("%q is no duration, such as 30s or 2m", s)
		}
		*p = d
		return nil
	}, func() string { return p.String() }}
}

func size(p *int64) value {
	return value{func(s string) error {
		number, unit := strings.TrimSpace(s), int64(1)
		for suffix, u := range map[string]int64{"KiB": 1 << 10, "MiB": 1 << 20} {
			if rest, ok := strings.CutSuffix(number, suffix); ok {
				number, unit = strings.TrimSpace(rest), u
			}
		}
		n, err := strconv.ParseInt(number, 10, 32)
		if err != nil || n <= 0 {
			return fmt.Errorf("%q is no size, such as 65536, 512KiB or 4MiB", s)
		}
		*p = n * unit
		return nil
	}, func() string {
		if *p%(1<<20) == 0 {
			return strconv.FormatInt(*p>>20, 10) + "MiB"
		}
		return strconv.FormatInt(*p, 10)
	}}
}

func address(p **common.Address) value {
	return value{func(s string) error {
		*p = nil
		if s == "" {
			return nil
		}
		a, err := parseAddress(s)
		if err != nil {
			return err
		}
		*p = &a
		return nil
	}, func() string {
		if *p == nil {
			return ""
		}
		return (*p).Hex()
	}}
}

func parseAddress(s string) (common.Address, error) {
	if !common.IsHexAddress(s) {
		return common.Address{}, fmt.Errorf("%q is no address: 0x and 40 hex digits", s)
	}
	a := common.HexToAddress(s)
	digits := s[len(s)-40:]
	if digits != strings.ToLower(digits) && digits != strings.ToUpper(digits) && digits != a.Hex()[2:] {
		return common.Address{}, fmt.Errorf("%q has a wrong checksum; a digit or a letter's case is mistyped", s)
	}
	return a, nil
}

func webURL(p **url.URL) value {
	return value{func(s string) error {
		*p = nil
		if s == "" {
			return nil
		}
		u, err := url.Parse(strings.TrimRight(s, "/"))
		if err != nil || (u.Scheme != "http" && u.Scheme != "https") || u.Host == "" || u.RawQuery != "" || u.Fragment != "" || u.User != nil {
			return errors.New("must have the form https://host/path, without a query")
		}
		*p = u
		return nil
	}, func() string {
		if *p == nil {
			return ""
		}
		return (*p).String()
	}}
}

func prefixes(p *[]netip.Prefix) value {
	var texts []string
	as := list(&texts)
	return value{func(s string) error {
		_ = as.set(s)
		*p = nil
		for _, t := range texts {
			prefix, err := netip.ParsePrefix(t)
			if a, addrErr := netip.ParseAddr(t); addrErr == nil {
				prefix, err = a.Prefix(a.BitLen())
			}
			if err != nil {
				return fmt.Errorf("%q is no network, such as 10.0.0.0/8", t)
			}
			*p = append(*p, prefix.Masked())
		}
		return nil
	}, func() string {
		texts = nil
		for _, prefix := range *p {
			texts = append(texts, prefix.String())
		}
		return as.get()
	}}
}

// wei takes an amount of the chain's smallest unit; with gwei behind it, of a thousand million of them.
func wei(p **big.Int) value {
	return value{func(s string) error {
		*p = nil
		if s == "" {
			return nil
		}
		number, gwei := strings.CutSuffix(strings.ToLower(strings.TrimSpace(s)), "gwei")
		amount, ok := new(big.Rat).SetString(strings.TrimSpace(number))
		if ok && gwei {
			amount.Mul(amount, big.NewRat(1e9, 1))
		}
		if !ok || strings.ContainsAny(number, "/eExX_") || !amount.IsInt() || amount.Sign() <= 0 || amount.Num().BitLen() > 128 {
			return fmt.Errorf("%q is no amount above 0, such as 100gwei or 30000000000", s)
		}
		*p = new(big.Int).Set(amount.Num())
		return nil
	}, func() string {
		if *p == nil {
			return ""
		}
		return (*p).String()
	}}
}
