package stress

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

const (
	// chunk is how much is taken at a time.
	chunk = 16 << 20
	// reserve is what the machine keeps whatever is asked for.
	reserve = 512 << 20
)

// ErrMachine says that the machine has not got what was asked for.
var ErrMachine = errors.New("the machine cannot give that much")

// Memory takes and keeps so many bytes. Where memory runs out it is what the kernel kills
// first.
func Memory(bytes int64) Load {
	return func(ctx context.Context, ready func(...any) error) error {
		if bytes <= 0 {
			return fmt.Errorf("%w: %d bytes", ErrInput, bytes)
		}
		free, err := availableMemory()
		if err != nil {
			return err
		}
		if bytes > free-reserve {
			return fmt.Errorf("%w: %d MiB are asked for, %d MiB are free and %d MiB stay so", ErrMachine, bytes>>20, free>>20, reserve>>20)
		}
		if err := os.WriteFile("/proc/self/oom_score_adj", []byte("1000"), 0); err != nil {
			return fmt.Errorf("being the first to be killed: %w", err)
		}
		for left := bytes; left > 0 && ctx.Err() == nil; left -= chunk {
			if err := touchMemory(int(min(left, chunk))); err != nil {
				return err
			}
		}
		err = ready()
		<-ctx.Done()
		return err
	}
}

// touchMemory maps memory and touches every page of it. It goes with the process.
func touchMemory(bytes int) error {
	m, err := unix.Mmap(-1, 0, bytes, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return fmt.Errorf("taking %d bytes: %w", bytes, err)
	}
	for i := 0; i < len(m); i += os.Getpagesize() {
		m[i] = 1
	}
	return nil
}

// availableMemory is what programs can still take without others being pushed out.
func availableMemory() (int64, error) {
	f, err := os.Open("/proc/meminfo")
	if err != nil {
		return 0, fmt.Errorf("reading free memory: %w", err)
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if words := strings.Fields(lines.Text()); len(words) == 3 && words[0] == "MemAvailable:" {
			kb, err := strconv.ParseInt(words[1], 10, 64)
			return kb << 10, err
		}
	}
	return 0, errors.New("reading free memory: the kernel does not tell")
}
