package draft

import (
	"strings"
	"testing"

	"skerry/internal/database"
	"skerry/internal/database/redis"
)

// made is a database that is installed everywhere and never started.
type made struct {
	*redis.Redis
	name string
}

func (m made) Name() string                      { return m.name }
func (m made) Check(int, database.Options) error { return nil }
func (m made) Find(string, string) (database.Installation, error) {
	return database.Installation{Database: m.name, Version: "1"}, nil
}

func registry() (list []database.About) {
	for _, name := range []string{"one", "two"} {
		list = append(list, database.About{Name: name, New: func() database.Database {
			return made{
				redis.New(), name,
			}
		}, Choices: func(database.Placement) []database.Choice {
			return []database.Choice{{Name: "safe", Reads: database.ReadsLinearizable, GivesUp: "speed"}}
		}})
	}
	return list
}

// The defaults of the form are valid needs and are read back unchanged, with each kind of bad day.
func TestDraftsAreValidNeeds(t *testing.T) {
	s := DefaultNeeds()
	for _, d := range Days() {
		if target := map[string]string{"site": "Pune", "link": "Pune~Sydney"}[d.On]; !d.Any || d.On == "link" {
			s.BadDays = append(s.BadDays, d.Key+": "+target)
		}
	}
	s.Must = append(s.Must, "read: linearizable")
	text, contest, err := s.Check("needs.yaml", registry(), 0)
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if n := contest.Needs; len(contest.Candidates) != 2 || len(n.BadDays) != len(s.BadDays) || n.Load.Target != s.Target ||
		len(n.Must) != len(s.Must) {
		t.Errorf("%d candidates, %+v", len(contest.Candidates), n)
	}
}

func TestWrongAnswers(t *testing.T) {
	for want, change := range map[string]func(*Needs){
		"unknown database": func(s *Needs) { s.Consider = []string{"onee"} },
		"Atlantis":         func(s *Needs) { s.BadDays = []string{"site_lost: Atlantis"} },
		"no such metric":   func(s *Needs) { s.Must = []string{"p98 < 1s"} },
		"budget":           func(s *Needs) { s.Budget = "1s" },
	} {
		s := DefaultNeeds()
		change(&s)
		if _, _, err := s.Check("needs.yaml", registry(), 0); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
