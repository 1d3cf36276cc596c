package experiment

import "strings"

// database splits NAME@SERIES and checks that a database is given. Its abilities are checked by Check.
func (c *checker) database() {
	d := &c.e.Database
	if d.Label() == "" {
		c.fail("database", "give name, or exec: FILE", "no database is given")
	}
	name, series, ok := strings.Cut(d.Name, "@")
	switch {
	case !ok:
	case series == "":
		c.fail("database.name", "write redis@7.0, or leave @ out", "%s: no series after @", d.Name)
	case d.Version != "" && d.Version != series:
		c.fail("database.name", "give the version once", "%s has version %s, too", d.Name, d.Version)
	default:
		d.Name, d.Version = name, series
	}
}
