package topology

import (
	"encoding/json"
	"fmt"
)

// OverlaySpec is how packets find their way over the links.
type OverlaySpec struct {
	// Kind is direct, the default, for the first link of each pair alone, or an overlay by its name.
	Kind string `yaml:"kind" json:"kind,omitempty"`
	// Settings tune overlays, each under its name: "babel: {hello: 40ms}". What they mean is the
	// overlay's to say.
	Settings map[string]map[string]any `yaml:",rest" json:"-"`
}

// Shorthand: "overlay: babel" is "overlay: {kind: babel}".
func (OverlaySpec) Shorthand() string { return "kind" }

// MarshalJSON has the keys of the file.
func (s OverlaySpec) MarshalJSON() ([]byte, error) {
	all := make(map[string]any)
	if s.Kind != "" {
		all["kind"] = s.Kind
	}
	for name, settings := range s.Settings {
		all[name] = settings
	}
	data, err := json.Marshal(all)
	if err != nil {
		return nil, fmt.Errorf("writing the overlay as JSON: %w", err)
	}
	return data, nil
}

// Overlay is how packets find their way over the links of a topology. The zero value is
// direct.
type Overlay struct {
	Kind string `json:"kind"`
	// Settings are those of overlays by their names: Kind's, and others', which are a mistake.
	Settings map[string]map[string]any `json:"settings,omitempty"`
}

// Direct is the absence of an overlay.
const Direct = "direct"

// Routed tells whether nodes pass on packets of others.
func (o Overlay) Routed() bool { return o.Kind != "" && o.Kind != Direct }

func (b *builder) addOverlay() {
	b.t.Overlay = Overlay{Kind: b.spec.Overlay.Kind, Settings: b.spec.Overlay.Settings}
	if b.spec.Encryption == WireGuard {
		b.t.Encryption = WireGuard
	}
}
