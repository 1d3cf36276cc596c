package topology

import "testing"

func TestMatch(t *testing.T) {
	for _, tt := range []struct {
		pattern           string
		forward, backward bool
	}{
		{"Pune~Sydney", true, false}, {"Sydney~Pune", false, true}, {"Pune~*", true, false}, {"*~Pune", false, true},
		{"S?dney~*", false, true}, {"Pune", true, false}, {"Sydney", false, true}, {"Pune~Sydney#2", false, false}, {"Seoul~*", false, false}, {"link-7", true, false},
	} {
		forward, backward, err := Match(tt.pattern, "link-7", "Pune", "Sydney")
		if err != nil || forward != tt.forward || backward != tt.backward {
			t.Errorf("%s: %v, %v, %v", tt.pattern, forward, backward, err)
		}
	}
	for _, tt := range []struct {
		pattern, id       string
		forward, backward bool
	}{
		{"Pune~Sydney", "Pune~Sydney#1", true, false}, {"Pune~Sydney#1", "Pune~Sydney#1", true, false}, {"Sydney~Pune#1", "Pune~Sydney#1", false, true},
		{"Pune~Sydney#1", "Pune~Sydney#2", false, false}, {"Pune~Sydney#1", "Pune~Sydney", true, false}, {"Pune~Sydney#1", "spare", false, false},
		{"Sydney~Pune#spare", "spare", false, true}, {"Pune~Sydney#*", "spare", true, false}, {"Pune~*#2", "Pune~Sydney#2", true, false},
	} {
		if forward, backward, err := Match(tt.pattern, tt.id, "Pune", "Sydney"); err != nil || forward != tt.forward || backward != tt.backward {
			t.Errorf("%s of %s: %v, %v, %v", tt.pattern, tt.id, forward, backward, err)
		}
	}
	if _, _, err := Match("Pune~[", "", "Pune", "Sydney"); err == nil {
		t.Error("an impossible pattern gives an error")
	}
	links := []Link{{ID: "Pune~Sydney", A: "Pune", B: "Sydney"}}
	if got := NearestLink("Sydnee~Pune", links); got != "Sydney~Pune" {
		t.Errorf("nearest %q", got)
	}
}
