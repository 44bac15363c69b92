package devnet

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"time"
)

// MissingPostgresError says that no PostgreSQL server binaries were found, and what to type to get them.
type MissingPostgresError struct {
	Searched []string // the folders looked into
	Version  string   // the major version that an existing cluster needs; empty when any will do
	Install  string   // the exact line to type
}

// Error implements error.
func (e *MissingPostgresError) Error() string {
	what := "PostgreSQL"
	if e.Version != "" {
		what += " " + e.Version + " (the version that made the existing database folder)"
	}
	return fmt.Sprintf("%s is not installed (looked into %s); install it with:\n\n    %s\n\nor name a running server with --database-url",
		what, strings.Join(e.Searched, ", "), e.Install)
}

// installLine is what a person types on this machine to get the server binaries without a system-wide cluster.
func installLine() string {
	if runtime.GOOS == "darwin" {
		return "brew install postgresql@17"
	}
	for _, manager := range []struct{ command, line string }{
		{"apt-get", "sudo scripts/install-postgres.sh"},
		{"dnf", "sudo dnf install -y postgresql-server"},
		{"apk", "sudo apk add postgresql"},
		{"pacman", "sudo pacman -S --noconfirm postgresql"},
		{"zypper", "sudo zypper install -y postgresql-server"},
	} {
		if _, err := exec.LookPath(manager.command); err != nil {
			continue
		}
		if manager.command == "apt-get" {
			if _, err := os.Stat("scripts/install-postgres.sh"); err != nil {
				// Away from the source tree. The first half keeps Debian from making and starting a cluster of its own.
				return "sudo sh -c 'mkdir -p /etc/postgresql-common && echo create_main_cluster=false > /etc/postgresql-common/createcluster.conf" +
					" && apt-get update && apt-get install -y postgresql'"
			}
		}
		return manager.line
	}
	return "see https://www.postgresql.org/download/"
}

// FindPostgres returns the folder that holds initdb and postgres. A given folder is the only one looked into; otherwise
// `pg_config --bindir`, Debian's versioned folders (newest first), PATH and the usual places of other systems are tried in
// this order. With a major version given, folders of another version are passed over.
func FindPostgres(given, majorVersion string) (string, error) {
	candidates := []string{given}
	if given == "" {
		candidates = binaryFolders()
	}
	for _, folder := range candidates {
		if !executable(filepath.Join(folder, "initdb")) || !executable(filepath.Join(folder, "postgres")) {
			continue
		}
		if majorVersion != "" {
			if version, err := serverVersion(folder); err != nil || version != majorVersion {
				continue
			}
		}
		return folder, nil
	}
	return "", &MissingPostgresError{Searched: candidates, Version: majorVersion, Install: installLine()}
}

func binaryFolders() []string {
	var folders []string
	if out, err := output("pg_config", "--bindir"); err == nil {
		folders = append(folders, strings.TrimSpace(out))
	}
	for _, pattern := range []string{"/usr/lib/postgresql/*/bin"} {
		folders = append(folders, newestFirst(pattern)...)
	}
	for _, folder := range filepath.SplitList(os.Getenv("PATH")) {
		if executable(filepath.Join(folder, "initdb")) {
			folders = append(folders, folder)
		}
	}
	for _, pattern := range []string{
		"/opt/homebrew/opt/postgresql*/bin", "/usr/local/opt/postgresql*/bin", "/usr/pgsql-*/bin", "/usr/libexec/postgresql*",
	} {
		folders = append(folders, newestFirst(pattern)...)
	}
	folders = append(folders, "/usr/local/pgsql/bin")
	seen := map[string]bool{"": true}
	return slices.DeleteFunc(folders, func(folder string) bool {
		old := seen[folder]
		seen[folder] = true
		return old
	})
}

// newestFirst lists the folders of a pattern by the number in their path, so that 15 comes before 9.
func newestFirst(pattern string) []string {
	folders, err := filepath.Glob(pattern)
	if err != nil {
		return nil
	}
	number := func(path string) int {
		digits := strings.Map(func(r rune) rune {
			if r >= '0' && r <= '9' {
				return r
			}
			return -1
		}, path)
		n, err := strconv.Atoi(digits)
		if err != nil {
			return 0
		}
		return n
	}
	slices.SortStableFunc(folders, func(a, b string) int { return number(b) - number(a) })
	return folders
}

// serverVersion is the major version of the binaries in a folder: "postgres (PostgreSQL) 15.18 (Debian …)" gives 15.
func serverVersion(folder string) (string, error) {
	out, err := output(filepath.Join(folder, "postgres"), "--version")
	if err != nil {
		return "", err
	}
	_, rest, found := strings.Cut(out, "(PostgreSQL) ")
	if !found {
		return "", fmt.Errorf("read the version of %s: unknown text %q", folder, out)
	}
	end := strings.IndexFunc(rest, func(r rune) bool { return r < '0' || r > '9' })
	if end < 0 {
		end = len(rest)
	}
	return rest[:end], nil
}

func output(command string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	out, err := exec.CommandContext(ctx, command, args...).Output()
	if err != nil {
		return "", fmt.Errorf("run %s: %w", command, err)
	}
	return string(out), nil
}

func executable(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.Mode().IsRegular() && info.Mode()&0o111 != 0
}
