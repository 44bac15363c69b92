package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// lockDataDir makes the data folder and takes it for this process. The lock goes with the process, however that ends.
func lockDataDir(dir string) (*os.File, error) {
	// The private database runs as a user of its own when we are root, and has to pass through.
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("make the data folder: %w", err)
	}
	file, err := os.OpenFile(filepath.Join(dir, "pactwire.lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("lock the data folder: %w", err)
	}
	if err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB); err != nil {
		owner := ""
		if text, readErr := os.ReadFile(file.Name()); readErr == nil && len(text) > 0 {
			owner = " (process " + strings.TrimSpace(string(text)) + ")"
		}
		_ = file.Close()
		return nil, fmt.Errorf("the data folder %s is in use by another pactwire%s; stop that one, or choose another folder with --data-dir", dir, owner)
	}
	if err := file.Truncate(0); err == nil {
		_, err = fmt.Fprintln(file, os.Getpid())
		if err != nil {
			_ = file.Close()
			return nil, fmt.Errorf("lock the data folder: %w", err)
		}
	}
	return file, nil
}
