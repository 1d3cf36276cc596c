package event

// Docs is a kind's part of docs/events.md, which make docs writes from it.
type Docs struct {
	Section Section
	// Rows are those of the section's table, one or more.
	Rows []Row
}

// Section is a part of docs/events.md.
type Section string

// The sections, in order.
const (
	SectionLinks      Section = "Links"
	SectionNodes      Section = "Nodes"
	SectionMembership Section = "Membership"
	SectionResources  Section = "Resources"
)

// Sections are all sections, in order.
func Sections() []Section {
	return []Section{SectionLinks, SectionNodes, SectionMembership, SectionResources}
}

// Row is a line of a table.
type Row struct {
	// Examples are values of the kind's key, as an experiment has them.
	Examples []string
	Text     string
}
