//go:build unix

package devnet

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// cluster is the folder of a private server: where its files are and as whom it runs.
//
// The folder may lie where the server's user cannot walk to, such as /root. The server then gets the folder as an open
// descriptor and reaches everything in it through that; only the programs that connect use the real path.
type cluster struct {
	dir       string // absolute, symbolic links resolved
	bin       string
	as        account
	socketDir string // as clients reach it
	serverDir string // dir, as the server reaches it
	shortSock bool   // the socket lies in a folder of its own outside dir, because dir's path is too long for a socket
}

// A socket's address holds 107 bytes on Linux and 103 elsewhere.
const maxSocketPath = 103

func openCluster(cfg PostgresConfig) (*cluster, error) {
	if cfg.Dir == "" {
		return nil, errors.New("start PostgreSQL: no folder given")
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("make PostgreSQL's folder: %w", err)
	}
	dir, err := filepath.Abs(cfg.Dir)
	if err != nil {
		return nil, fmt.Errorf("find PostgreSQL's folder: %w", err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return nil, fmt.Errorf("find PostgreSQL's folder: %w", err)
	}
	version, err := os.ReadFile(filepath.Join(dir, "data", "PG_VERSION"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read the version of the database folder: %w", err)
	}
	c := &cluster{dir: dir, serverDir: dir, socketDir: filepath.Join(dir, "s")}
	if c.bin, err = FindPostgres(cfg.BinDir, strings.TrimSpace(string(version))); err != nil {
		return nil, err
	}
	if c.as, err = serverAccount(); err != nil {
		return nil, err
	}
	if err := c.as.own(dir); err != nil {
		return nil, err
	}
	if !c.as.reaches(dir) {
		if throughDescriptor == "" {
			return nil, fmt.Errorf("PostgreSQL runs as another user than root and cannot reach %s: choose a folder outside of private ones with --data-dir", dir)
		}
		c.serverDir = throughDescriptor
	}
	return c, c.prepareSocketDir()
}

// prepareSocketDir makes the private folder of the socket: inside the cluster's folder, or under /tmp where the path would
// be too long. Whoever can enter it is trusted by the server, so a folder that somebody else prepared is refused.
func (c *cluster) prepareSocketDir() error {
	if len(c.socketDir)+len("/.s.PGSQL.5432") > maxSocketPath {
		sum := sha256.Sum256([]byte(c.dir))
		c.socketDir, c.shortSock = fmt.Sprintf("/tmp/pactwire-%d-%s", c.as.uid, hex.EncodeToString(sum[:6])), true
	}
	if err := os.Mkdir(c.socketDir, 0o700); err == nil && c.as.drop {
		if err := os.Lchown(c.socketDir, c.as.uid, c.as.gid); err != nil {
			return fmt.Errorf("give the socket's folder to PostgreSQL's user: %w", err)
		}
	} else if err != nil && !errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("make the socket's folder: %w", err)
	}
	info, err := os.Lstat(c.socketDir)
	if err != nil {
		return fmt.Errorf("look at the socket's folder: %w", err)
	}
	owner, ok := info.Sys().(*syscall.Stat_t)
	if !ok || !info.IsDir() || int(owner.Uid) != c.as.uid || info.Mode().Perm() != 0o700 {
		return fmt.Errorf("the socket's folder %s is not a private folder of PostgreSQL's user: remove it", c.socketDir)
	}
	return nil
}

func (c *cluster) removeShortSocketDir() {
	if c.shortSock {
		_ = os.Remove(c.socketDir) // only when empty, which a stopped server leaves it
	}
}

// folderForServer opens the cluster's folder for a child that reaches it through the descriptor.
func (c *cluster) folderForServer() (files []*os.File, closeAll func(), err error) {
	if c.serverDir == c.dir {
		return nil, func() {}, nil
	}
	folder, err := os.Open(c.dir)
	if err != nil {
		return nil, nil, fmt.Errorf("open PostgreSQL's folder: %w", err)
	}
	return []*os.File{folder}, func() { _ = folder.Close() }, nil
}

// initialise makes the cluster if there is none. It is made beside and renamed, so that a kill in the middle leaves nothing half made.
func (c *cluster) initialise(log *slog.Logger) error {
	data, unfinished := filepath.Join(c.dir, "data"), filepath.Join(c.dir, "data.new")
	if _, err := os.Stat(filepath.Join(data, "PG_VERSION")); err == nil {
		return nil
	}
	begin := time.Now()
	if err := os.RemoveAll(unfinished); err != nil {
		return fmt.Errorf("remove an unfinished database folder: %w", err)
	}
	files, closeFiles, err := c.folderForServer()
	if err != nil {
		return err
	}
	defer closeFiles()
	var said bytes.Buffer
	// Syncing 1,000 files one by one takes longer than making them; the server syncs at its first checkpoint what matters.
	cmd := c.as.command(filepath.Join(c.bin, "initdb"), &said, files, "-D", c.serverDir+"/data.new", "-U", postgresUser,
		"--auth=trust", "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions")
	ended, err := start(cmd)
	if err != nil {
		return err
	}
	if err := <-ended; err != nil {
		return fmt.Errorf("initialise PostgreSQL in %s: %w: %s", c.dir, err, strings.TrimSpace(said.String()))
	}
	if err := os.Rename(unfinished, data); err != nil {
		return fmt.Errorf("put the new database folder in place: %w", err)
	}
	log.Debug("PostgreSQL is initialised", "folder", c.dir, "binaries", c.bin, "took", time.Since(begin))
	return nil
}

type child struct {
	process *os.Process
	done    <-chan error
}

func (c *cluster) launch(fast bool) (child, error) {
	files, closeFiles, err := c.folderForServer()
	if err != nil {
		return child{}, err
	}
	defer closeFiles()
	logFile, err := os.Create(filepath.Join(c.dir, "postgres.log")) // of the last run only, so it stays small
	if err != nil {
		return child{}, fmt.Errorf("open PostgreSQL's log: %w", err)
	}
	defer logFile.Close()
	socketDir := c.socketDir
	if !c.shortSock {
		socketDir = c.serverDir + "/s"
	}
	args := []string{"-D", c.serverDir + "/data"}
	for _, setting := range c.settings(socketDir, fast) {
		args = append(args, "-c", setting)
	}
	cmd := c.as.command(filepath.Join(c.bin, "postgres"), logFile, files, args...)
	done, err := start(cmd)
	if err != nil {
		return child{}, err
	}
	return child{process: cmd.Process, done: done}, nil
}

func (c *cluster) settings(socketDir string, fast bool) []string {
	connections := 200
	if fast {
		connections = 600 // many test binaries share one server
	}
	settings := []string{
		"listen_addresses=",
		"port=5432", // only names the socket
		"unix_socket_directories=" + socketDir,
		"unix_socket_permissions=0700",
		"max_connections=" + strconv.Itoa(connections),
		"shared_buffers=128MB",
		"max_wal_size=1GB",
		"timezone=UTC",
		"log_timezone=UTC",
		// The log is for what stops the server; a statement's error goes to the one who sent it.
		"log_min_messages=log",
		"log_checkpoints=off",
		"logging_collector=off",
	}
	if fast {
		settings = append(settings, "fsync=off", "synchronous_commit=off", "full_page_writes=off", "autovacuum=off",
			"wal_level=minimal", "max_wal_senders=0")
	}
	return settings
}

type pidFile struct {
	pid   int
	ready bool
}

// readPID reads what the server says of itself: process id in line 1, state in line 8.
func (c *cluster) readPID() (pidFile, error) {
	text, err := os.ReadFile(filepath.Join(c.dir, "data", "postmaster.pid"))
	if err != nil {
		return pidFile{}, fmt.Errorf("read PostgreSQL's pid file: %w", err)
	}
	lines := strings.Split(string(text), "\n")
	pid, err := strconv.Atoi(strings.TrimSpace(lines[0]))
	if err != nil || pid <= 0 {
		return pidFile{}, fmt.Errorf("read PostgreSQL's pid file: no process id in %q", lines[0])
	}
	return pidFile{pid: pid, ready: len(lines) > 7 && strings.TrimSpace(lines[7]) == "ready"}, nil
}

// stopLeftover ends a server that a killed process left behind. The caller holds the folder's lock, so no living process
// owns it; a process that merely has the same number by now is left alone.
func (c *cluster) stopLeftover(ctx context.Context, log *slog.Logger) error {
	state, err := c.readPID()
	if err != nil {
		return nil //nolint:nilerr // no file, or one that the server itself will judge
	}
	data := filepath.Join(c.dir, "data")
	if !worksIn(state.pid, data) {
		if syscall.Kill(state.pid, 0) == nil {
			// The number belongs to somebody else by now, and would keep the server from starting.
			if err := os.Remove(filepath.Join(data, "postmaster.pid")); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("remove the stale pid file: %w", err)
			}
		}
		return nil
	}
	log.Debug("stopping the PostgreSQL that an earlier run left behind", "pid", state.pid)
	for _, step := range []struct {
		signal syscall.Signal
		wait   time.Duration
	}{{stopFast, time.Second}, {stopImmediate, 3 * time.Second}, {syscall.SIGKILL, 3 * time.Second}} {
		if err := syscall.Kill(state.pid, step.signal); err != nil && !errors.Is(err, syscall.ESRCH) {
			return fmt.Errorf("stop the PostgreSQL that an earlier run left behind: %w", err)
		}
		gone, err := awaitGone(ctx, state.pid, data, step.wait)
		if gone || err != nil {
			return err
		}
	}
	return fmt.Errorf("stop the PostgreSQL that an earlier run left behind: process %d does not end", state.pid)
}

func awaitGone(ctx context.Context, pid int, folder string, wait time.Duration) (bool, error) {
	deadline := time.NewTimer(wait)
	defer deadline.Stop()
	tick := time.NewTicker(pollInterval)
	defer tick.Stop()
	for worksIn(pid, folder) {
		select {
		case <-ctx.Done():
			return false, fmt.Errorf("wait for the PostgreSQL that an earlier run left behind: %w", context.Cause(ctx))
		case <-deadline.C:
			return false, nil
		case <-tick.C:
		}
	}
	return true, nil
}
