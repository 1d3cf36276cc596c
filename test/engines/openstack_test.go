package engines

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
)

// object is an object of a cloud in its API.
type object = map[string]any

// openstack simulates the parts of Keystone, Nova, Neutron and Glance that deploy/tofu/openstack uses. Servers exist
// immediately and run nothing. As in a cloud, objects in use cannot be deleted.
type openstack struct {
	url string

	mu      sync.Mutex
	made    map[string]map[string]object // by kind and ID
	count   int
	strange []string // unknown requests
}

// fixtures exist from the start.
const fixtures = 3

func newOpenStack(t *testing.T) *openstack {
	o := &openstack{made: map[string]map[string]object{}}
	o.put("flavors", object{"id": "2", "name": "m1.medium", "vcpus": 2, "ram": 4096, "disk": 40, "links": []any{}})
	o.put("images", object{"id": "i1", "name": "debian-12", "status": "active", "created_at": "2026-01-01T00:00:00Z", "updated_at": "2026-01-01T00:00:00Z"})
	o.put("networks", object{"id": "outside", "name": "public", "status": "ACTIVE", "admin_state_up": true, "subnets": []any{}, "router:external": true})
	mux := http.NewServeMux()
	mux.HandleFunc("GET /identity/{$}", o.versions)
	mux.HandleFunc("POST /identity/v3/auth/tokens", o.token)
	mux.HandleFunc("GET /image/v2/images", o.list("images", "images"))
	mux.HandleFunc("GET /image/v2/images/{id}", func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		writeJSON(w, http.StatusOK, o.made["images"][r.PathValue("id")])
	})
	mux.HandleFunc("GET /compute/flavors/detail", o.list("flavors", "flavors"))
	mux.HandleFunc("GET /compute/flavors/{id}", o.get("flavors", "flavor"))
	mux.HandleFunc("GET /compute/flavors/{id}/os-extra_specs", answer(object{"extra_specs": object{}}))
	mux.HandleFunc("POST /compute/os-keypairs", o.makeKey)
	mux.HandleFunc("GET /compute/os-keypairs/{id}", o.get("keypairs", "keypair"))
	mux.HandleFunc("DELETE /compute/os-keypairs/{id}", o.remove("keypairs", http.StatusAccepted))
	mux.HandleFunc("POST /compute/servers", o.makeServer)
	mux.HandleFunc("GET /compute/servers/{id}", o.get("servers", "server"))
	mux.HandleFunc("DELETE /compute/servers/{id}", o.remove("servers", http.StatusNoContent))
	mux.HandleFunc("GET /compute/servers/{id}/os-interface", o.interfaces)
	mux.HandleFunc("GET /compute/servers/{id}/os-volume_attachments", answer(object{"volumeAttachments": []any{}}))
	mux.HandleFunc("GET /compute/servers/{id}/tags", answer(object{"tags": []any{}}))
	mux.HandleFunc("GET /network/v2.0/extensions", answer(object{"extensions": []any{}}))
	mux.HandleFunc("PUT /network/v2.0/routers/{id}/add_router_interface", o.plug)
	mux.HandleFunc("PUT /network/v2.0/routers/{id}/remove_router_interface", o.unplug)
	for _, kind := range []string{"networks", "subnets", "ports", "routers", "floatingips", "security-groups", "security-group-rules"} {
		one, many := strings.ReplaceAll(strings.TrimSuffix(kind, "s"), "-", "_"), strings.ReplaceAll(kind, "-", "_")
		mux.HandleFunc("GET /network/v2.0/"+kind, o.list(kind, many))
		mux.HandleFunc("POST /network/v2.0/"+kind, o.make(kind, one))
		mux.HandleFunc("GET /network/v2.0/"+kind+"/{id}", o.get(kind, one))
		mux.HandleFunc("DELETE /network/v2.0/"+kind+"/{id}", o.remove(kind, http.StatusNoContent))
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		o.strange = append(o.strange, r.Method+" "+r.URL.String())
		http.NotFound(w, r)
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	o.url = s.URL
	return o
}

// in decodes the object in a request.
func in(r *http.Request, key string) object {
	var body map[string]object
	_ = json.NewDecoder(r.Body).Decode(&body) // empty if the body is invalid
	if body[key] == nil {
		return object{}
	}
	return body[key]
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if body != nil {
		_ = json.NewEncoder(w).Encode(body)
	}
}

func answer(body object) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { writeJSON(w, http.StatusOK, body) }
}

func (o *openstack) versions(w http.ResponseWriter, _ *http.Request) {
	writeJSON(w, http.StatusMultipleChoices, object{"versions": object{"values": []object{{"id": "v3.14", "status": "stable", "links": []object{{"rel": "self", "href": o.url + "/identity/v3/"}}}}}})
}

func (o *openstack) token(w http.ResponseWriter, _ *http.Request) {
	var catalog []object
	for kind, path := range map[string]string{"identity": "/identity/v3", "compute": "/compute", "network": "/network", "image": "/image"} {
		catalog = append(catalog, object{"type": kind, "name": kind, "id": kind, "endpoints": []object{{"id": kind, "interface": "public", "region": "one", "region_id": "one", "url": o.url + path}}})
	}
	w.Header().Set("X-Subject-Token", "token")
	writeJSON(w, http.StatusCreated, object{"token": object{"expires_at": "2099-01-01T00:00:00.000000Z", "issued_at": "2026-01-01T00:00:00.000000Z", "catalog": catalog,
		"project": object{"id": "p", "name": "lab"}, "user": object{"id": "u", "name": "lab"}}})
}

// put stores an object. The caller holds mu if there are concurrent requests.
func (o *openstack) put(kind string, x object) {
	if o.made[kind] == nil {
		o.made[kind] = map[string]object{}
	}
	o.made[kind][x["id"].(string)] = x
}

func (o *openstack) list(kind, key string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		found := []object{}
		for _, x := range o.made[kind] {
			fits := true
			for _, by := range []string{"id", "name", "device_id", "network_id"} {
				if want := r.URL.Query().Get(by); want != "" && x[by] != want {
					fits = false
				}
			}
			if fits {
				found = append(found, x)
			}
		}
		writeJSON(w, http.StatusOK, object{key: found})
	}
}

func (o *openstack) get(kind, key string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		x, ok := o.made[kind][r.PathValue("id")]
		if !ok {
			writeJSON(w, http.StatusNotFound, object{})
			return
		}
		writeJSON(w, http.StatusOK, object{key: x})
	}
}

// user returns an object that must be deleted before the one with an ID.
func (o *openstack) user(id string) string {
	for _, kind := range []string{"subnets", "ports", "routers"} {
		for _, x := range o.made[kind] {
			if text, err := json.Marshal(x); x["id"] != id && (err != nil || strings.Contains(string(text), `"`+id+`"`)) {
				return x["id"].(string)
			}
		}
	}
	return ""
}

func (o *openstack) remove(kind string, status int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		o.mu.Lock()
		defer o.mu.Unlock()
		id := r.PathValue("id")
		if _, ok := o.made[kind][id]; !ok {
			writeJSON(w, http.StatusNotFound, object{})
			return
		}
		if user := o.user(id); user != "" && kind != "servers" && kind != "keypairs" { // servers copy key pairs and release ports when deleted
			writeJSON(w, http.StatusConflict, object{"NeutronError": object{"type": "InUse", "message": id + " is in use by " + user, "detail": ""}})
			return
		}
		for _, p := range o.made["ports"] {
			if p["device_id"] == id {
				p["device_id"] = ""
			}
		}
		delete(o.made[kind], id)
		writeJSON(w, status, nil)
	}
}

// make creates networks and their parts.
func (o *openstack) make(kind, one string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		x := in(r, one)
		o.mu.Lock()
		defer o.mu.Unlock()
		o.count++
		x["id"], x["status"], x["tags"] = fmt.Sprintf("%s-%d", one, o.count), "ACTIVE", []any{}
		switch kind {
		case "networks":
			x["admin_state_up"], x["subnets"] = true, []any{}
		case "subnets":
			x["gateway_ip"], x["allocation_pools"], x["host_routes"] = "10.50.0.1", []any{}, []any{}
			x["service_types"] = []any{}
		case "security-groups":
			x["security_group_rules"] = []any{}
		case "floatingips":
			x["floating_ip_address"], x["fixed_ip_address"] = fmt.Sprintf("203.0.113.%d", o.count), "10.50.0.2"
		case "ports":
			o.address(x)
		}
		o.put(kind, x)
		writeJSON(w, http.StatusCreated, object{one: x})
	}
}

// address gives a port its addresses on its network.
func (o *openstack) address(port object) {
	for _, s := range o.made["subnets"] {
		if s["network_id"] == port["network_id"] {
			port["fixed_ips"] = []object{{"subnet_id": s["id"], "ip_address": fmt.Sprintf("10.50.0.%d", 10+o.count)}}
		}
	}
	port["mac_address"] = fmt.Sprintf("fa:16:3e:00:00:%02x", o.count)
	port["allowed_address_pairs"] = []any{}
	port["admin_state_up"] = true
}

func (o *openstack) plug(w http.ResponseWriter, r *http.Request) {
	var body struct {
		Subnet string `json:"subnet_id"`
	}
	_ = json.NewDecoder(r.Body).Decode(&body)
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	id := fmt.Sprintf("port-%d", o.count)
	o.put("ports", object{"id": id, "status": "ACTIVE", "device_owner": "network:router_interface", "device_id": r.PathValue("id"), "network_id": o.made["subnets"][body.Subnet]["network_id"],
		"fixed_ips": []object{{"subnet_id": body.Subnet, "ip_address": "10.50.0.1"}}})
	writeJSON(w, http.StatusOK, object{"id": r.PathValue("id"), "subnet_id": body.Subnet, "port_id": id})
}

func (o *openstack) unplug(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for id, p := range o.made["ports"] {
		if p["device_id"] == r.PathValue("id") {
			delete(o.made["ports"], id)
		}
	}
	writeJSON(w, http.StatusOK, object{"id": r.PathValue("id")})
}

func (o *openstack) makeKey(w http.ResponseWriter, r *http.Request) {
	k := in(r, "keypair")
	k["id"], k["fingerprint"], k["user_id"] = k["name"], "f", "u"
	o.mu.Lock()
	defer o.mu.Unlock()
	o.put("keypairs", k)
	writeJSON(w, http.StatusOK, object{"keypair": k})
}

func (o *openstack) makeServer(w http.ResponseWriter, r *http.Request) {
	s := in(r, "server")
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	id := fmt.Sprintf("server-%d", o.count)
	addresses := object{}
	if nets, _ := s["networks"].([]any); len(nets) == 1 {
		port := o.made["ports"][nets[0].(object)["port"].(string)]
		port["device_id"] = id
		at := port["fixed_ips"].([]object)[0]["ip_address"]
		addresses[o.made["networks"][port["network_id"].(string)]["name"].(string)] = []object{{"addr": at, "version": 4, "OS-EXT-IPS:type": "fixed", "OS-EXT-IPS-MAC:mac_addr": port["mac_address"]}}
	}
	o.put("servers", object{"id": id, "name": s["name"], "status": "ACTIVE", "flavor": object{"id": s["flavorRef"]}, "image": object{"id": s["imageRef"]}, "key_name": s["key_name"], "metadata": object{},
		"addresses": addresses, "user_data": s["user_data"], "OS-EXT-AZ:availability_zone": s["availability_zone"], "OS-EXT-STS:power_state": 1, "OS-EXT-STS:vm_state": "active",
		"security_groups": []object{}, "created": "2026-01-01T00:00:00Z", "updated": "2026-01-01T00:00:00Z"})
	writeJSON(w, http.StatusAccepted, object{"server": object{"id": id, "adminPass": ""}})
}

func (o *openstack) interfaces(w http.ResponseWriter, r *http.Request) {
	o.mu.Lock()
	defer o.mu.Unlock()
	found := []object{}
	for _, p := range o.made["ports"] {
		if p["device_id"] == r.PathValue("id") {
			found = append(found, object{"port_id": p["id"], "net_id": p["network_id"], "mac_addr": p["mac_address"], "fixed_ips": p["fixed_ips"], "port_state": "ACTIVE"})
		}
	}
	writeJSON(w, http.StatusOK, object{"interfaceAttachments": found})
}

// all returns the objects of a kind.
func (o *openstack) all(kind string) (list []object) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, x := range o.made[kind] {
		list = append(list, x)
	}
	slices.SortFunc(list, func(a, b object) int { return strings.Compare(a["id"].(string), b["id"].(string)) })
	return list
}

// left returns the kinds and IDs of all remaining objects.
func (o *openstack) left() (list []string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for kind, all := range o.made {
		for id := range all {
			list = append(list, kind+" "+id)
		}
	}
	return list
}
