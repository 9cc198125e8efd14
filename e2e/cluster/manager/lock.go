package main

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// lockFile takes an exclusive lock, waiting for whoever holds it. The kernel
// frees it when the holder dies, so a kill -9 never leaves one behind.
//
// The file may be deleted by its holder (`down` removes the whole folder), so
// after each wait the lock counts only if the path still names the same file.
func lockFile(path, waiting string) (*os.File, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			if os.IsNotExist(err) { // the folder went away under us: again
				if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
					return nil, err
				}
				continue
			}
			return nil, err
		}
		descriptor := int(file.Fd())
		err = syscall.Flock(descriptor, syscall.LOCK_EX|syscall.LOCK_NB)
		if err == syscall.EWOULDBLOCK {
			say("%s", waiting)
			err = flockRetry(descriptor)
		}
		if err != nil {
			file.Close()
			return nil, fmt.Errorf("lock %s: %w", path, err)
		}
		if sameFile(file, path) {
			return file, nil
		}
		file.Close()
	}
}

func flockRetry(descriptor int) error {
	for {
		err := syscall.Flock(descriptor, syscall.LOCK_EX)
		if err != syscall.EINTR {
			return err
		}
	}
}

func sameFile(file *os.File, path string) bool {
	held, err := file.Stat()
	if err != nil {
		return false
	}
	named, err := os.Stat(path)
	return err == nil && os.SameFile(held, named)
}

// lockCluster lets one `up`, `down`, `load` or `slow` at a time touch a cluster.
func lockCluster(state string) (*os.File, error) {
	return lockFile(filepath.Join(state, "lock"), "another command works on this cluster; waiting for it to end")
}

// lockHost guards what all clusters of the machine share: the choice of an
// address range and the kernel settings saved for `down`.
func lockHost() (*os.File, error) {
	return lockFile(hostLockPath, "another cluster is being started or removed; waiting for it")
}
