package draft

import (
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"skerry/internal/database/all"
)

// interview answers questions that contain a word with the next of its answers, and others with Return.
type interview struct {
	answers   map[string][]string
	questions []string
}

func (i *interview) line(question string, _ []string) (string, error) {
	i.questions = append(i.questions, question)
	for word, left := range i.answers {
		if strings.Contains(question, word) && len(left) > 0 {
			i.answers[word] = left[1:]
			return left[0], nil
		}
	}
	return "", nil
}

func (i *interview) hold(t *testing.T, out io.Writer) (Experiment, error) {
	t.Helper()
	databases := all.Databases()
	return Interview[Experiment]{Line: i.line, Out: out, Questions: (*Experiment).Questions, Check: func(d Experiment) (Places, error) {
		_, v, err := d.Check("x.yaml", databases)
		if err != nil {
			return Places{}, err
		}
		return NewPlaces(v.Cloud()), nil
	}}.Run(DefaultExperiment())
}

func TestReturnAcceptsEveryDefault(t *testing.T) {
	got, err := (&interview{}).hold(t, io.Discard)
	if text, _ := got.YAML(); err != nil || text != must(t, DefaultExperiment()) {
		t.Errorf("%v\n%s", err, text)
	}
}

func must(t *testing.T, d Experiment) string {
	t.Helper()
	text, err := d.YAML()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// A wrong answer is reported and asked again; a new topology has its own sites.
func TestAnswersAreCheckedImmediately(t *testing.T) {
	i := &interview{answers: map[string][]string{
		"Database": {"rediss", "etcd"}, "Topology": {"mesh:3"}, "Site": {"Atlantis", "n2"}, "Distance": {"far", "0.5 1"},
		"Event": {"kil", "kill=n1", "cut"}, "Assertions": {"-"}, "Audit": {"perhaps", "yes"},
	}}
	var out strings.Builder
	d, err := i.hold(t, &out)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		`did you mean "redis"`, "Atlantis", `"far" is not a number`, `"perhaps" is neither yes nor no`,
		`did you mean "kill"`,
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no message with %s:\n%s", want, &out)
		}
	}
	if d.Database != "etcd" || d.Topology != "mesh:3" || d.Client != "n2" || !slices.Equal(d.Scales, []float64{0.5, 1}) ||
		len(d.Events) != 2 || !d.Audit || len(d.Assert) != 0 {
		t.Errorf("%+v", d)
	}
	if !slices.ContainsFunc(i.questions, func(q string) bool { return strings.Contains(q, "[n1]") }) {
		t.Errorf("the first site of the new topology is not an option: %q", i.questions)
	}
}

func TestAbortedInterview(t *testing.T) {
	broken := errors.New("Ctrl-C")
	i := Interview[Experiment]{Line: func(string, []string) (string, error) { return "", broken }, Out: io.Discard,
		Questions: (*Experiment).Questions, Check: func(Experiment) (Places, error) { return Places{}, nil }}
	if _, err := i.Run(DefaultExperiment()); !errors.Is(err, broken) {
		t.Error(err)
	}
}
