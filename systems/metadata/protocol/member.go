package protocol

// Member is a replica of a server: what POST /v1/members/add and /v1/members/remove take.
type Member struct {
	Name string `json:"name"`
	Addr string `json:"addr,omitempty"` // where the other replicas reach it
}
