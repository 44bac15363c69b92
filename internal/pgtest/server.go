package pgtest

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/pactwire/pactwire/devnet"
)

// EnvURL names the environment variable with the URL of a server whose user may create databases.
const EnvURL = "PACTWIRE_TEST_DATABASE_URL"

// slots bounds how many private servers one user's test binaries run side by side.
const slots = 64

// StartServer starts a private server in the first folder that no other process uses. It ends with this process, or by stop.
func StartServer(ctx context.Context, log *slog.Logger) (url string, stop func(), err error) {
	if _, err := devnet.FindPostgres("", ""); err != nil {
		return "", nil, err
	}
	root := filepath.Join(os.TempDir(), fmt.Sprintf("pactwire-pgtest-%d", os.Geteuid()))
	for slot := range slots {
		dir := filepath.Join(root, strconv.Itoa(slot))
		server, err := devnet.StartPostgres(ctx, devnet.PostgresConfig{Dir: dir, Fast: true}, log)
		if errors.Is(err, devnet.ErrFolderInUse) {
			continue
		}
		if err != nil && ctx.Err() == nil {
			// Without fsync a power failure may leave a broken cluster; nothing in it is worth keeping.
			if server, err = startAfresh(ctx, dir, log); errors.Is(err, devnet.ErrFolderInUse) {
				continue
			}
		}
		if err != nil {
			return "", nil, fmt.Errorf("start a PostgreSQL for tests: %w", err)
		}
		stop := func() {
			ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
			defer cancel()
			_ = server.Stop(ctx)
		}
		url := server.URL("postgres")
		if err := dropLeftovers(ctx, url); err != nil {
			stop()
			return "", nil, err
		}
		return url, stop, nil
	}
	return "", nil, fmt.Errorf("start a PostgreSQL for tests: all %d folders under %s are in use", slots, root)
}

func startAfresh(ctx context.Context, dir string, log *slog.Logger) (*devnet.Postgres, error) {
	if err := os.RemoveAll(filepath.Join(dir, "data")); err != nil {
		return nil, fmt.Errorf("remove a broken cluster: %w", err)
	}
	return devnet.StartPostgres(ctx, devnet.PostgresConfig{Dir: dir, Fast: true}, log)
}
