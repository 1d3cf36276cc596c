package statedir

import (
	"fmt"
	"os"
	"path/filepath"
)

// DefaultStateDir is $SKERRY_STATE, else /run/skerry for root and
// $XDG_RUNTIME_DIR/skerry for others.
func DefaultStateDir() string {
	if dir := os.Getenv("SKERRY_STATE"); dir != "" {
		return dir
	}
	if os.Geteuid() == 0 {
		return "/run/skerry"
	}
	if dir := os.Getenv("XDG_RUNTIME_DIR"); dir != "" {
		return filepath.Join(dir, "skerry")
	}
	return filepath.Join(cacheDir(), "state")
}

// DefaultDataDir is $SKERRY_DATA, else /var/tmp/skerry for root and
// $XDG_CACHE_HOME/skerry/nodes for others.
func DefaultDataDir() string {
	if dir := os.Getenv("SKERRY_DATA"); dir != "" {
		return dir
	}
	if os.Geteuid() == 0 {
		return "/var/tmp/skerry"
	}
	return filepath.Join(cacheDir(), "nodes")
}

func cacheDir() string {
	dir, err := os.UserCacheDir()
	if err != nil {
		return fmt.Sprintf("/var/tmp/skerry-%d", os.Getuid())
	}
	return filepath.Join(dir, "skerry")
}
