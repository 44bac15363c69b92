//go:build unix && !linux

package devnet

import (
	"strconv"
	"strings"
	"syscall"
)

// endWithParent does nothing: only Linux can bind a child's life to its parent's. The next start stops what was left.
func endWithParent(*syscall.SysProcAttr) {}

// throughDescriptor is empty: there is no way around folders that the server's user may not enter.
const throughDescriptor = ""

// worksIn reports whether the process is a PostgreSQL server of the folder, going by its command line.
func worksIn(pid int, folder string) bool {
	out, err := output("ps", "-o", "command=", "-p", strconv.Itoa(pid))
	return err == nil && strings.Contains(out, "postgres") && strings.Contains(out, folder)
}
