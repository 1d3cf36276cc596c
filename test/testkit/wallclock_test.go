package testkit

import (
	"bufio"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"
)

// TestMain lets this test binary print the time on request.
func TestMain(m *testing.M) {
	if len(os.Args) == 2 && os.Args[1] == "clock" {
		began := time.Now()
		for in := bufio.NewScanner(os.Stdin); in.Scan(); {
			now := time.Now()
			fmt.Println(now.Unix(), now.Sub(began).Nanoseconds())
		}
		return
	}
	os.Exit(m.Run())
}

func TestClock(t *testing.T) {
	cmd := exec.Command(os.Args[0], "clock")
	ask, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ask.Close()
		if err := cmd.Wait(); err != nil {
			t.Error(err)
		}
	})
	in := bufio.NewReader(answers)
	tell := func() (wall, elapsed int64) {
		t.Helper()
		if _, err := io.WriteString(ask, "?\n"); err != nil {
			t.Fatal(err)
		}
		line, err := in.ReadString('\n')
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fmt.Sscan(line, &wall, &elapsed); err != nil {
			t.Fatal(err)
		}
		return wall, elapsed
	}
	tell()
	c := AttachClock(t, cmd.Process.Pid)
	last := int64(0)
	for _, by := range []time.Duration{0, 5 * time.Hour, -5 * time.Hour, 0} {
		c.Set(t, by)
		before := time.Now().Unix()
		wall, elapsed := tell()
		after := time.Now().Unix()
		if wall -= int64(by.Seconds()); wall < before-1 || wall > after+1 {
			t.Errorf("after a jump of %v its clock shows %d, want %d to %d", by, wall, before, after)
		}
		if elapsed < last || elapsed > int64(time.Hour) {
			t.Errorf("after a jump of %v its monotonic clock shows %d ns, %d before", by, elapsed, last)
		}
		last = elapsed
	}
}
