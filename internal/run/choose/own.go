package choose

import (
	"errors"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"skerry/internal/base/strict"
	"skerry/internal/database"
	"skerry/internal/database/external"
	"skerry/internal/experiment"
	"skerry/internal/record/metric"
)

// Considered is an entry of consider: a database that Skerry runs in the cloud, or a cluster that it did not start.
type Considered struct {
	// Name of a database ("redis", "redis@7.0"), or any name for a cluster that Skerry did not start.
	Name string `yaml:"name" json:"name" jsonschema:"required"`
	// Database is the driver and the cluster, as in an experiment: {name: postgres, cluster: {servers: ["10.0.3.11:5432"]}}.
	Database *experiment.Database `yaml:"database" json:"database,omitempty"`
}

// Shorthand lets "redis" stand for "{name: redis}".
func (Considered) Shorthand() string { return "name" }

func (n Needs) checkConsidered(report func(path, hint, format string, args ...any)) {
	for i, o := range n.Consider {
		at := fmt.Sprintf("consider[%d]", i)
		same := func(p Considered) bool { return p.Database != nil && Slug(p.Name) == Slug(o.Name) }
		switch {
		case o.Name == otherDatabases && i < len(n.Consider)-1:
			report(at, "put it last", "%s stands for all other databases", otherDatabases)
		case o.Database == nil:
		case o.Database.Cluster == nil:
			report(at+".database", "give the name alone: Skerry then runs the database in the cloud", "%s has no cluster", o.Name)
		case Slug(o.Name) == "":
			report(at+".name", "use letters and digits", "%q cannot name a folder", o.Name)
		case slices.ContainsFunc(n.Consider[:i], same):
			report(at+".name", "give it another name", "two clusters are named %s", o.Name)
		}
	}
	own := slices.ContainsFunc(n.Consider, func(o Considered) bool { return o.Database != nil })
	if commands := n.Commands(); own && n.usesLab() && len(commands) > 0 {
		report("bad_days", "compare own clusters in a choice of their own",
			"%s would act on your clusters while databases in the cloud are measured", commands[0])
	}
}

// usesLab reports whether any candidate is a database that Skerry runs in the cloud.
func (n Needs) usesLab() bool {
	return len(n.Consider) == 0 || slices.ContainsFunc(n.Consider, func(o Considered) bool { return o.Database == nil })
}

// Reasons why a need or a bad day is not measured on a cluster that Skerry did not start.
const (
	cannotBreak   = "bad days were not tried: Skerry cannot break this cluster"
	hiddenServers = "Skerry does not see the processors, memory and traffic of its servers"
	hiddenCopies  = "Skerry does not read its copies one by one"
	oneClient     = "all requests to it come from this machine"
	hiddenChoices = "Skerry does not know its settings"
)

// ownCandidate is the candidate of a cluster that Skerry did not start. Its commands run in the folder of the needs file.
func (n Needs) ownCandidate(o Considered) (Candidate, error) {
	d, cluster := *o.Database, *o.Database.Cluster
	var err error
	if cluster.Dir, err = filepath.Abs(filepath.Join(n.dir, cluster.Dir)); err != nil {
		return Candidate{}, fmt.Errorf("resolve the folder of %s: %w", o.Name, err)
	}
	if d.Exec != "" && !filepath.IsAbs(d.Exec) {
		if d.Exec, err = filepath.Abs(filepath.Join(n.dir, d.Exec)); err != nil {
			return Candidate{}, fmt.Errorf("resolve the definition of %s: %w", o.Name, err)
		}
	}
	d.Cluster = &cluster
	return Candidate{
		Database: d.Label(), Version: external.UnknownVersion, Own: o.Name, Location: cluster.String(), Commands: cluster.Commands(), own: &d,
		Choice: database.Choice{Name: "as it is", GivesUp: "not known: " + hiddenChoices},
	}, nil
}

// Guarantee is the guarantee of reads.
func (c Candidate) Guarantee() string {
	if c.Own != "" {
		return "not known"
	}
	return c.Reads.String()
}

// unmeasured returns why a metric is not measured on a day, "" if it is.
func (c Candidate) unmeasured(l metric.Assertion, day string) string {
	if why := c.untried[day]; why != "" {
		return why
	}
	return c.hides(l.Name)
}

// hides returns why a metric cannot be measured on any day, "" if it can.
func (c Candidate) hides(name string) string {
	m, err := metric.ParseName(name)
	scope, _, _ := strings.Cut(name, ".")
	switch {
	case c.Own == "" || err != nil:
		return ""
	case scope == "cost" || scope == "traffic":
		return hiddenServers
	case name == "stale_copies":
		return hiddenCopies
	case m.Pool != "":
		return oneClient
	}
	return ""
}

// findUnmeasured finds the needs and days that cannot be measured on a cluster that Skerry did not start. Events can
// happen to it if an experiment on it accepts them; the others need the links and processes of a lab.
func (c *Contest) findUnmeasured(x *Candidate) {
	x.untried = map[string]string{}
	var days []string
	for _, d := range c.Needs.BadDays {
		why := cannotBreak
		if len(d.Events) > 0 {
			err := c.checkDay(*x, d.Label())
			var ps strict.Problems
			switch {
			case err == nil:
				continue
			case errors.As(err, &ps):
				why += " (" + ps[0].Message + ")"
			default:
				why += " (" + err.Error() + ")"
			}
		}
		x.untried[d.Label()] = why
		days = append(days, d.Label())
	}
	switch {
	case len(days) > 0 && len(days) == len(c.Needs.BadDays) && x.untried[days[0]] == cannotBreak:
		x.NotMeasured = append(x.NotMeasured, cannotBreak)
	case len(days) > 0:
		for _, day := range days {
			x.NotMeasured = append(x.NotMeasured, day+": "+x.untried[day])
		}
	}
	if c.Needs.requiredReads() > database.ReadsAny {
		x.NotMeasured = append(x.NotMeasured, fmt.Sprintf("read: %s: %s", c.Needs.requiredReads(), hiddenChoices))
	}
	for _, m := range c.Needs.Must {
		if l, err := metric.ParseAssertion(m.Line); err == nil {
			if why := x.hides(l.Name); why != "" {
				x.NotMeasured = append(x.NotMeasured, l.Text+": "+why)
			}
		}
	}
}

// ownNotes are remarks on a cluster that Skerry did not start, next to the candidates in labs.
func (n Needs) ownNotes(x Candidate) (notes []string) {
	if n.usesLab() {
		notes = append(notes, x.Label()+" is measured as it is, over its own network from this machine; the other databases run in the cloud")
	}
	for _, name := range n.Prefer {
		if why := x.hides(name); why != "" {
			notes = append(notes, fmt.Sprintf("%s: %s is not measured: %s", x.Label(), name, why))
		}
	}
	return notes
}

// OwnClusters reports whether any candidate is a cluster that Skerry did not start.
func (c *Contest) OwnClusters() bool {
	return slices.ContainsFunc(c.Candidates, func(x Candidate) bool { return x.Own != "" })
}

// NeedsLab reports whether any candidate runs in a lab.
func (c *Contest) NeedsLab() bool {
	return slices.ContainsFunc(c.Candidates, func(x Candidate) bool { return x.Own == "" })
}

// FirstCommand returns a command of the user that a trial runs, or a secret of this machine that it uses, "" for none.
func (c *Contest) FirstCommand() string {
	for _, x := range c.Candidates {
		used := x.Commands
		if x.own != nil {
			used = append(slices.Clone(used), x.own.Exec, x.own.Cluster.Secret())
		}
		for _, line := range used {
			if line != "" {
				return line
			}
		}
	}
	return ""
}
