//go:build unix

package devnet

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
)

// account is the operating-system user that a child runs as. PostgreSQL refuses to run as root, so root steps down.
type account struct {
	uid, gid int
	drop     bool // the child must leave our own user
}

func serverAccount() (account, error) {
	if os.Geteuid() != 0 {
		return account{uid: os.Geteuid(), gid: os.Getegid()}, nil
	}
	for _, name := range []string{"postgres", "nobody"} {
		found, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, errUID := strconv.Atoi(found.Uid)
		gid, errGID := strconv.Atoi(found.Gid)
		if errUID != nil || errGID != nil || uid == 0 {
			continue
		}
		return account{uid: uid, gid: gid, drop: true}, nil
	}
	return account{}, fmt.Errorf("choose a user for PostgreSQL, which refuses to run as root: neither postgres nor nobody exists")
}

// reaches reports whether the account may walk down to the folder. Access lists are not read: a wrong "no" only means that
// the longer way is taken.
func (a account) reaches(folder string) bool {
	if !a.drop {
		return true
	}
	for at := folder; ; at = filepath.Dir(at) {
		info, err := os.Stat(at)
		if err != nil {
			return false
		}
		owner, ok := info.Sys().(*syscall.Stat_t)
		if !ok {
			return false
		}
		bit := os.FileMode(0o001)
		switch {
		case int(owner.Uid) == a.uid:
			bit = 0o100
		case int(owner.Gid) == a.gid:
			bit = 0o010
		}
		if info.Mode()&bit == 0 {
			return false
		}
		if at == filepath.Dir(at) {
			return true
		}
	}
}

// own gives a folder and what is in it to the account, when it is not so already.
func (a account) own(folder string) error {
	if !a.drop {
		return nil
	}
	info, err := os.Stat(folder)
	if err != nil {
		return fmt.Errorf("look at %s: %w", folder, err)
	}
	if owner, ok := info.Sys().(*syscall.Stat_t); ok && int(owner.Uid) == a.uid {
		return nil
	}
	err = filepath.WalkDir(folder, func(path string, _ os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		return os.Lchown(path, a.uid, a.gid)
	})
	if err != nil {
		return fmt.Errorf("give %s to PostgreSQL's user: %w", folder, err)
	}
	return nil
}

// command prepares a child in a process group of its own (Ctrl-C on the terminal must reach us first, and us alone), as the
// account's user, with an environment that does not depend on who calls.
func (a account) command(binary string, out io.Writer, files []*os.File, args ...string) *exec.Cmd {
	cmd := exec.Command(binary, args...)
	cmd.Stdout, cmd.Stderr = out, out
	cmd.ExtraFiles = files
	cmd.Dir = "/"
	cmd.Env = []string{"PATH=" + filepath.Dir(binary) + ":/usr/bin:/bin", "LC_ALL=C", "TZ=UTC"}
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if a.drop {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	endWithParent(cmd.SysProcAttr)
	return cmd
}

// start runs the command and returns once it is started; done receives how it ended. The "die with your parent" signal of
// Linux is bound to the thread that started the child, so that thread stays for as long as the child does.
func start(cmd *exec.Cmd) (done <-chan error, err error) {
	started, ended := make(chan error, 1), make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := cmd.Start(); err != nil {
			started <- err
			return
		}
		started <- nil
		ended <- cmd.Wait()
	}()
	if err := <-started; err != nil {
		return nil, fmt.Errorf("start %s: %w", filepath.Base(cmd.Path), err)
	}
	return ended, nil
}

// ErrFolderInUse says that another process works with the data folder.
var ErrFolderInUse = errors.New("the folder is in use by another pactwire")

// lockFolder takes the folder for this process, or says that another one has it. The lock goes with the process.
func lockFolder(folder string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(folder, "lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock of %s: %w", folder, err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("%s: %w (choose another one with --data-dir)", folder, ErrFolderInUse)
	}
	return file, nil
}
