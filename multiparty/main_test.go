package multiparty

import (
	"testing"

	"github.com/pactwire/pactwire/internal/chaintest"
	"github.com/pactwire/pactwire/internal/pgtest"
)

func TestMain(m *testing.M) { pgtest.Main(m, chaintest.IgnoreLeaks()...) }
