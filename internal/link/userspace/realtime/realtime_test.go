package realtime

import "testing"

func TestChildGroup(t *testing.T) {
	tests := []struct {
		name, groups, want string
	}{
		{"root", "3:cpuset:/x\n1:cpu:/\n0::/\n", ""},
		{"child", "3:cpuset:/\n1:cpu:/lab/node\n0::/\n", "cpu"},
		{"controllers together", "4:cpu,cpuacct:/user.slice\n", "cpu,cpuacct"},
		{"version 2", "0::/user.slice/session-1.scope\n", ""},
		{"other names", "5:cpuset,cpuacct:/x\n", ""},
		{"nothing", "", ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			got, ok := childGroup(tt.groups)
			if got != tt.want || ok != (tt.want != "") {
				t.Errorf("childGroup = %q, %v; want %q", got, ok, tt.want)
			}
		})
	}
}
