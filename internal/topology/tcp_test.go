package topology

import (
	"maps"
	"strings"
	"testing"
)

func TestTCP(t *testing.T) {
	for text, want := range map[string]map[string]string{
		"from: pair": nil,
		"from: pair\ndefaults: {tcp: {congestion_control: bbr}}":                            {"congestion_control": "bbr"},
		"from: 'pair,tcp.congestion_control=bbr'\ndefaults: {tcp: {ecn: 0}}":                {"congestion_control": "bbr", "ecn": "0"},
		"from: pair\ndefaults: {tcp: {rmem: '4096  131072 6291456', wmem: '1 1 1'}}":        {"rmem": "4096 131072 6291456", "wmem": "1 1 1"},
		"from: pair\ndefaults: {tcp: {slow_start_after_idle: false, ecn: 1}}":               {"slow_start_after_idle": "0", "ecn": "1"},
		"from: pair\ndefaults: {rtt: 1ms, tcp: {slow_start_after_idle: true, wmem: 1 2 3}}": {"slow_start_after_idle": "1", "wmem": "1 2 3"},
	} {
		topo, err := build(t, text, nil)
		if err != nil || !maps.Equal(topo.TCP, want) {
			t.Errorf("%q: %v, %v", text, topo.TCP, err)
		}
	}
	for text, want := range map[string]string{
		"from: pair\ndefaults: {tcp: {congestion_control: 'Cubic'}}":          `invalid congestion control name "Cubic"`,
		"from: pair\ndefaults: {tcp: {congestion_control: a23456789b123456}}": "invalid congestion control name",
		"from: pair\ndefaults: {tcp: {rmem: 4096 87380}}":                     "is not three ascending sizes",
		"from: pair\ndefaults: {tcp: {rmem: 8192 4096 16384}}":                "is not three ascending sizes",
		"from: pair\ndefaults: {tcp: {wmem: 4096 16384 4GiB}}":                "is not three ascending sizes",
		"from: pair\ndefaults: {tcp: {wmem: 0 1 9223372036854775807}}":        "is not three ascending sizes",
		"from: pair\ndefaults: {tcp: {ecn: 3}}":                               "defaults.tcp.ecn",
		"from: pair\ndefaults: {tcp: {congestion_controls: bbr}}":             "congestion_control",
	} {
		if _, err := build(t, text, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", text, err, want)
		}
	}
}
