package topology

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"skerry/internal/base/strict"
	"skerry/internal/base/suggest"
	"skerry/internal/base/unit"
	"skerry/internal/link"
)

const (
	// maxID is the maximum length of a link's ID in bytes; maxName keeps "A~B#9999" within it.
	maxID   = 64
	maxName = 29
	// maxLinks is what one machine can emulate. A full mesh of 256 nodes has 32,640 links.
	maxLinks = 100_000
	// defaultSiteRTT is the round-trip time between two hosts of one datacentre.
	defaultSiteRTT = 500 * time.Microsecond
)

var validName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// ReadFile reads a file that a topology refers to.
type ReadFile func(path string) ([]byte, error)

// Build builds the topology that s describes. File paths are relative to dir. The error is strict.Problems with paths
// relative to the spec.
func (s Spec) Build(dir string, read ReadFile) (Topology, error) {
	s, err := s.resolve(dir, read, 0)
	if err != nil {
		return Topology{}, err
	}
	b := &builder{spec: s, sites: map[string]int{}, nodes: map[string]int{}}
	b.t.Name = s.Name
	b.readMatrices(read)
	b.addSites()
	b.addNodes()
	b.addOverlay()
	b.addService()
	b.addVolumes()
	b.addTCP()
	if len(b.problems) == 0 {
		b.addLinks()
	}
	if len(b.problems) == 0 && len(b.t.Nodes) == 0 {
		b.fail("", "the topology has no nodes", "give sites, nodes or a matrix, or start from a preset: "+strings.Join(Presets(), ", "))
	}
	if len(b.problems) > 0 {
		return Topology{}, b.problems
	}
	return b.t, nil
}

// builder holds a topology under construction.
type builder struct {
	spec      Spec
	t         Topology
	sites     map[string]int // index by name
	nodes     map[string]int
	latency   *table[time.Duration] // round trips
	bandwidth *table[int64]
	problems  strict.Problems
}

func (b *builder) fail(path, message, hint string) {
	b.problems = append(b.problems, strict.Problem{Path: path, Message: message, Hint: hint})
}

func (b *builder) readMatrices(read ReadFile) {
	m := b.spec.Matrix
	b.latency = readMatrix(b, read, m.Latency, tableFormat[time.Duration]{
		path: "matrix.latency", unit: "ms", parse: unit.ParseDuration, mirrored: true, average: m.Average,
	})
	b.bandwidth = readMatrix(b, read, m.Bandwidth, tableFormat[int64]{path: "matrix.bandwidth", unit: "mbit", parse: unit.ParseBandwidth})
}

// readMatrix reads a table from a file path, or from text with several lines.
func readMatrix[T ~int64](b *builder, read ReadFile, given string, f tableFormat[T]) *table[T] {
	if given == "" {
		return nil
	}
	text := given
	if !strings.Contains(given, "\n") {
		data, err := read(given)
		if err != nil {
			b.problems = append(b.problems, strict.Problem{
				Path: f.path, Message: "reading the matrix: " + err.Error(), Err: err, Hint: "give the path of a CSV file, relative to this file",
			})
			return nil
		}
		text = string(data)
		f.src = strict.NewSource(given, text)
	}
	t, problems := f.parseTable(text)
	b.problems = append(b.problems, problems...)
	return t
}

func (b *builder) addSites() {
	for i, s := range b.spec.Sites {
		path := fmt.Sprintf("sites[%d]", i)
		b.checkName(path, "site", s.Name)
		if (s.Lat == nil) != (s.Lon == nil) {
			b.fail(path, fmt.Sprintf("the site %q has only one of lat and lon", s.Name), "give both or none")
		}
		site := Site{Name: s.Name}
		if s.Lat != nil && s.Lon != nil {
			site.Lat, site.Lon, site.Located = *s.Lat, *s.Lon, true
		}
		b.addSite(site)
	}
	b.matrixSites("matrix.latency", b.latency.names())
	b.matrixSites("matrix.bandwidth", b.bandwidth.names())
}

func (b *builder) addSite(s Site) {
	s.Local = link.Quality{Latency: defaultSiteRTT / 2}
	if r := b.spec.Defaults.SiteRTT; r != nil {
		s.Local.Latency = time.Duration(*r) / 2
	}
	if w := b.spec.Defaults.SiteBandwidth; w != nil {
		s.Local.Bandwidth = int64(*w)
	}
	b.sites[s.Name] = len(b.t.Sites)
	b.t.Sites = append(b.t.Sites, s)
}

// matrixSites checks the labels of a matrix against the sites. Without sites it creates them from the labels.
func (b *builder) matrixSites(path string, names []string) {
	if len(b.spec.Sites) == 0 && len(b.t.Sites) == 0 {
		for _, name := range names {
			b.checkName(path, "site", name)
			b.addSite(Site{Name: name})
		}
	}
	for _, name := range names {
		if _, ok := b.sites[name]; !ok {
			b.fail(path, fmt.Sprintf("the matrix names the unknown site %q", name), b.suggestName(name, b.siteNames()))
		}
	}
}

func (b *builder) addNodes() {
	for i, n := range b.spec.Nodes {
		path := fmt.Sprintf("nodes[%d]", i)
		if n.Site == "" {
			n.Site = n.Name
			if _, ok := b.sites[n.Site]; !ok {
				b.addSite(Site{Name: n.Site})
			}
		}
		if _, ok := b.sites[n.Site]; !ok {
			b.fail(path+".site", fmt.Sprintf("node %q is at the unknown site %q", n.Name, n.Site), b.suggestName(n.Site, b.siteNames()))
		}
		b.addNode(path, n)
	}
	if len(b.spec.Nodes) > 0 {
		return
	}
	for i, s := range b.t.Sites {
		count := 1
		if i < len(b.spec.Sites) && b.spec.Sites[i].Nodes != nil {
			count = *b.spec.Sites[i].Nodes
		}
		for k := range count {
			name := s.Name
			if count > 1 {
				name = fmt.Sprintf("%s-%d", s.Name, k+1)
			}
			b.addNode(fmt.Sprintf("sites[%d]", i), NodeSpec{Name: name, Site: s.Name})
		}
	}
}

func (b *builder) addNode(path string, n NodeSpec) {
	if len(b.spec.Nodes) > 0 || n.Name != n.Site && validName.MatchString(n.Site) { // the site's name has been checked
		b.checkName(path, "node", n.Name)
	}
	if _, twice := b.nodes[n.Name]; twice {
		b.fail(path, fmt.Sprintf("duplicate node name %q", n.Name), "rename the sites, or list the nodes")
		return
	}
	node := Node{Name: n.Name, Site: n.Site, Role: n.Role}
	if node.Role == "" {
		node.Role = Data
	}
	b.setResources(&node, path, n)
	b.nodes[n.Name] = len(b.t.Nodes)
	b.t.Nodes = append(b.t.Nodes, node)
}

func (b *builder) checkName(path, what, name string) {
	switch {
	case !validName.MatchString(name):
		b.fail(path, fmt.Sprintf("invalid %s name %q", what, name), "use letters, digits, '.', '_' and '-', starting with a letter or digit")
	case len(name) > maxName:
		b.fail(path, fmt.Sprintf("%s name %q has %d bytes, at most %d are allowed", what, name, len(name), maxName), "")
	}
}

func (b *builder) siteNames() []string {
	names := make([]string, len(b.t.Sites))
	for i, s := range b.t.Sites {
		names[i] = s.Name
	}
	return names
}

// suggestName returns the hint for an unknown name.
func (b *builder) suggestName(name string, known []string) string {
	if near := suggest.Nearest(name, known); near != "" {
		return fmt.Sprintf("did you mean %q?", near)
	}
	if len(known) > 12 {
		known = append(slices.Clone(known[:12]), "...")
	}
	return "known are " + strings.Join(known, ", ")
}

// resolvePath resolves path against dir.
func resolvePath(dir, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(dir, path)
}
