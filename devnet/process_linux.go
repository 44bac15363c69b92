package devnet

import (
	"fmt"
	"os"
	"syscall"
)

// endWithParent makes the kernel end the child when we go, however we go. SIGINT is PostgreSQL's fast shutdown.
func endWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGINT }

// throughDescriptor is the path by which a child reaches a folder that it got as its first extra file, also where it may
// not walk down the folders above (a data folder inside /root, with PostgreSQL running as another user).
const throughDescriptor = "/proc/self/fd/3"

// worksIn reports whether the process has the folder as its working directory, as a PostgreSQL server has its cluster.
func worksIn(pid int, folder string) bool {
	at, err := os.Stat(fmt.Sprintf("/proc/%d/cwd", pid))
	if err != nil {
		return false
	}
	want, err := os.Stat(folder)
	return err == nil && os.SameFile(at, want)
}
