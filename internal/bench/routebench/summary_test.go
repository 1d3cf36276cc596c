package routebench

import "testing"

func TestSummarise(t *testing.T) {
	r := Overlay{Failures: []Failure{
		{Healed: true, HealMS: 300, Stretch: 1}, {Healed: true, HealMS: 100, Stretch: 1.2}, {Healed: true, HealMS: 200, Stretch: 1}, {Stretch: 1},
	}}
	r.summarise()
	if r.MedianMS != 200 || r.P95MS != 300 || r.Unhealed != 1 || r.Stretch != 1.05 {
		t.Errorf("summary: %+v", r)
	}
}

func TestMoved(t *testing.T) {
	median, most, never := moved([]Move{{true, 700}, {false, 0}, {true, 500}, {true, 600}})
	if median != 600 || most != 700 || never != 1 {
		t.Errorf("median %g, most %g, never %d", median, most, never)
	}
	if median, most, never := moved(nil); median != 0 || most != 0 || never != 0 {
		t.Errorf("of none: median %g, most %g, never %d", median, most, never)
	}
}
