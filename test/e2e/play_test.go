package e2e

import (
	"os"
	"strings"
	"syscall"
	"testing"
)

// The load runs until Ctrl-C, the command that play prints kills a member, and afterwards neither lab nor directory
// remains.
func TestPlayRunsUntilInterrupted(t *testing.T) {
	b := newBench(t)
	b.run(2, "play", "rediss")
	r := b.command("play", "redis", "--topology", "mesh:3,rtt=1ms", "--records", "100")
	temp := b.temp()
	r.cmd.Env = append(r.cmd.Env, "TMPDIR="+temp)
	r.start()
	dir := b.played()
	b.measuring(dir)
	checkEndless(t, dir)
	contains(t, r.stderr.String(), "skerry fire --run "+dir+" 'kill: {nodes: n1}, for: 10s'")
	fired := b.run(0, "fire", "--run", dir, "kill: {nodes: n1}, for: 10s")
	contains(t, fired.stdout.String(), "n1")
	if wrong := b.run(2, "fire", "--run", dir, "kil: {nodes: n1}"); !strings.Contains(wrong.stderr.String(), "kill") {
		t.Errorf("a misspelt event: %s", wrong.stderr.String())
	}
	r.signal(syscall.SIGINT)
	if code := r.wait(); code != 0 {
		t.Errorf("exit %d: %s", code, r.stderr.String())
	}
	contains(t, r.stderr.String(), "lab and results removed")
	if left, err := os.ReadDir(temp); err != nil || len(left) > 0 {
		t.Errorf("left: %v, %v", left, err)
	}
}
