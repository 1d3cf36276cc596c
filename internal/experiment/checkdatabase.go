package experiment

// database checks that there is one; whether it can do what is asked is Check's to say.
func (c *checker) database() {
	if c.e.Database.Label() == "" {
		c.fail("database", "give name, or exec: FILE", "no database is given")
	}
}
