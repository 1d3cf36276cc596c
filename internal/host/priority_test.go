package host

import (
	"testing"

	"golang.org/x/sys/unix"

	"skerry/internal/netns"
	"skerry/internal/testkit"
)

// What a skerry in a hurry starts is in none, and one that gives way stays so.
func TestProcessesHaveTheOrdinaryPriority(t *testing.T) {
	testkit.Need(t, testkit.Root)
	for nice, want := range map[int]int{-10: 0, 0: 0, 5: 5} {
		err := netns.Throwaway(func() error {
			if err := unix.Setpriority(unix.PRIO_PROCESS, 0, nice); err != nil {
				return err
			}
			if err := ordinary(); err != nil {
				return err
			}
			got, err := unix.Getpriority(unix.PRIO_PROCESS, 0)
			if 20-got != want {
				t.Errorf("nice %d became %d, want %d", nice, 20-got, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}
