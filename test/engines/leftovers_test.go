package engines

import (
	"strings"
	"time"
)

// leftovers lists the remains of labs on a machine, one per line: processes, namespaces, mounts, devices, ports,
// control groups, directories. The program in the cache may stay.
const leftovers = `
for p in /proc/[0-9]*; do
	[ $p != /proc/$$ ] || continue
	exe=$(readlink $p/exe) || continue
	case $exe in */skerry|*/skerry/agent/*) echo "process $(tr '\0' ' ' <$p/cmdline)";; esac
	! grep -qsz ^SKERRY_LAB= $p/environ || echo "process of a lab: $(tr '\0' ' ' <$p/cmdline)"
done
own=$(readlink /proc/1/ns/net)
for n in /proc/[0-9]*/ns/net; do at=$(readlink $n) || continue; [ $at = $own ] || echo "namespace $at of $n"; done
awk '$5 ~ "^/run/(skerry|netns)|^/var/tmp/skerry" {print "mount", $5}' /proc/1/mountinfo
ip -br link | awk '$1 !~ /^(lo|eth0)/ {print "device", $1}'
ip -4 -br addr | awk '/ 10[.](77|79|8[0-9]|9[0-5])[.]/ {print "address", $0}'
ip route show table all | awk '/^(local )?10[.]77[.]/ {print "route", $0}'
ss -Huln 'sport >= 51820 and sport <= 51899' | awk '{print "port", $0}'
find /sys/fs/cgroup -mindepth 3 -type d -path '*/skerry/*' -prune | sed 's/^/control group /'
ls -d /run/netns/skerry* /run/skerry/labs/* /run/skerry/elsewhere/* /var/tmp/skerry/* /tmp/skerry* /var/tmp/skerry-* 2>/dev/null | sed 's/^/file /'
true
`

// left returns the remains of labs on all machines.
func (r *room) left() string {
	r.t.Helper()
	var all strings.Builder
	for name, m := range r.machines {
		out, err := m.command("bash", "-c", leftovers).CombinedOutput()
		if err != nil {
			r.t.Fatalf("listing leftovers on %s: %v\n%s", name, err, out)
		}
		for line := range strings.Lines(string(out)) {
			all.WriteString(name + ": " + line)
		}
	}
	return all.String()
}

// fading bounds the time until removed objects disappear.
const fading = 20 * time.Second

// clean fails the test if anything remains on a machine.
func (r *room) clean(when string) {
	r.t.Helper()
	left := r.left()
	for late := time.Now().Add(fading); left != "" && time.Now().Before(late); left = r.left() {
		time.Sleep(100 * time.Millisecond)
	}
	if left != "" {
		r.t.Errorf("%s, this is left:\n%s", when, left)
	}
}
