package trial

import (
	"strings"
	"testing"

	"skerry/internal/record"
)

func TestJudge(t *testing.T) {
	good := func() record.Fidelity {
		return record.Fidelity{
			Links:               []record.LinkFidelity{{ID: "a~b", SetRTTMS: 35, Answered: true, RTTMS: 35.2, RTTErrorMS: 0.2}},
			WorstRTTErrorMS:     0.2,
			WorstBandwidthError: 0.01,
			EmulatorLateP99US:   120,
			ClientCPU:           0.5,
			HostCPU:             1.2,
			HostCores:           2,
		}
	}
	tests := []struct {
		name   string
		change func(*record.Fidelity)
		reason string // part of the only reason; "" for a valid trial
	}{
		{"good", func(*record.Fidelity) {}, ""},
		{"RTT", func(f *record.Fidelity) { f.Links[0].RTTErrorMS, f.WorstRTTErrorMS = -0.8, 0.8 }, "worst 0.80 ms"},
		{"jitter", func(f *record.Fidelity) { f.Links[0].SetJitterMS, f.Links[0].RTTErrorMS = 4, 1.5 }, ""},
		{"lost train", func(f *record.Fidelity) { f.Links[0].TrainLost = true }, "no bandwidth train arrived on 1 of 1 links"},
		{"silent link", func(f *record.Fidelity) { f.Links[0].Answered = false }, "1 of 1 links answered no probe"},
		{"bandwidth", func(f *record.Fidelity) { f.WorstBandwidthError = 0.2 }, "20.0 %"},
		{"emulator", func(f *record.Fidelity) { f.EmulatorLateP99US = 5000 }, "5.0 ms late"},
		{"unknown lateness", func(f *record.Fidelity) { f.EmulatorLateP99US = -1 }, ""},
		{"client CPU", func(f *record.Fidelity) { f.ClientCPU = 1.95 }, "the client, not the database"},
		{"client late", func(f *record.Fidelity) { f.ClientLateP99US = 9000 }, "9.0 ms late"},
		{"host", func(f *record.Fidelity) { f.HostCPU = 1.99 }, "CPU, not the network"},
		{"steal", func(f *record.Fidelity) { f.StealShare = 0.3 }, "30 %"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := good()
			tt.change(&f)
			v := judge(f, 2, DefaultLimits)
			if tt.reason == "" {
				if v.State != record.Valid || len(v.Reasons) > 0 {
					t.Errorf("got %+v, want valid", v)
				}
				return
			}
			if v.State != record.Suspect || len(v.Reasons) != 1 || !strings.Contains(v.Reasons[0], tt.reason) {
				t.Errorf("got %+v, want one reason with %q", v, tt.reason)
			}
		})
	}
}
