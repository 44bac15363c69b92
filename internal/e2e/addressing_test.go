package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	"github.com/pactwire/pactwire/gen"
)

// spellings are the ways in which clients put a signature into a path: as it is, with everything escaped that may be, in small hex digits, with the spaces
// that people write.
func spellings(signature string) map[string]string {
	var all, small strings.Builder
	for _, c := range []byte(signature) {
		if c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' {
			all.WriteByte(c)
			small.WriteByte(c)
			continue
		}
		fmt.Fprintf(&all, "%%%02X", c)
		fmt.Fprintf(&small, "%%%02x", c)
	}
	return map[string]string{
		"raw": signature, "escaped": all.String(), "escaped in small letters": small.String(), "with spaces": strings.ReplaceAll(signature, ",", ",%20"),
	}
}

// post sends JSON to a path that is written as it stands, and returns the answer's body.
func (s *service) post(t testing.TB, path, body string) (int, []byte) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+path, strings.NewReader(body))
	must(t, err)
	r.Header.Set("Content-Type", "application/json")
	response, err := s.http.Do(r)
	must(t, err)
	defer response.Body.Close()
	answer, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, answer
}

func TestOverloadsAreAddressedBySignatureHoweverItIsEscaped(t *testing.T) {
	t.Parallel()
	s, iface, address := zoo(t)
	base := "/api/v1/namespaces/default"
	const point, animal = `{"x":"1","y":"2"}`, `{"name":"a","track":[],"tag":"0x00000000","colour":"0","flags":[true,false]}`
	for _, c := range []struct{ signature, input, want string }{
		{"over()", `{}`, `"over()"`},
		{"over(uint256)", `{"0":1}`, `"over(uint256)"`},
		{"over(string)", `{"0":"x"}`, `"over(string)"`},
		{"over(uint256,string)", `{"0":1,"1":"x"}`, `"over(uint256,string)"`},
		{"over((int256,int256))", `{"0":` + point + `}`, `"over((int256,int256))"`},
		{"echoFixed(uint8[3])", `{"a":[1,2,3]}`, `["1","2","3"]`},
		{"echoMatrix(int256[][])", `{"a":[[1],[]]}`, `[["1"],[]]`},
		{"echoPoints((int256,int256)[2][])", `{"a":[[` + point + `,` + point + `]]}`, `[[` + point + `,` + point + `]]`},
		{"echoAnimal((string,(int256,int256)[],bytes4,uint8,bool[2]))", `{"animal":` + animal + `}`, animal},
	} {
		for how, spelling := range spellings(c.signature) {
			for level, path := range map[string]string{"API": "/apis/zoo/query/", "interface": "/contracts/interfaces/" + iface.ID.String() + "/query/"} {
				body := fmt.Sprintf(`{"input":%s,"location":{"address":"%s"}}`, c.input, address)
				status, answer := s.post(t, base+path+spelling, body)
				if status != http.StatusOK || !sameJSON(t, string(answer), `{"output":`+c.want+`}`) {
					t.Errorf("query %s at the %s, %s: %d %s, want %s", c.signature, level, how, status, answer, c.want)
				}
			}
		}
	}

	// The pathnames lead to the same, one each.
	seen := map[string]bool{}
	for _, m := range *iface.Methods {
		if m.Name != "over" {
			continue
		}
		input := map[int]string{0: `{}`, 1: `{"0":1}`, 2: `{"0":1,"1":"x"}`}[len(m.Params)]
		if len(m.Params) == 1 {
			switch *m.Params[0].Schema.Details.Type {
			case "tuple":
				input = `{"0":` + point + `}`
			case "string":
				input = `{"0":"x"}`
			}
		}
		seen[s.query(t, "zoo", m.Pathname, input)] = true
	}
	if len(seen) != 5 {
		t.Errorf("the pathnames of the overloads lead to %v", seen)
	}

	for how, spelling := range spellings("emitAnimal((string,(int256,int256)[],bytes4,uint8,bool[2]))") {
		status, answer := s.post(t, base+"/apis/zoo/invoke/"+spelling+"?confirm=true", `{"input":{"animal":`+animal+`}}`)
		var op gen.Operation
		if must(t, json.Unmarshal(answer, &op)); status != http.StatusOK || op.Status != "Succeeded" {
			t.Errorf("invoke, %s: %d %s", how, status, answer)
		}
	}

	// What is no signature of the contract is not found, and nothing worse.
	for _, wrong := range []string{"over(uint8)", "over(", "over)", "over(uint256", "%28%29", "over(int256,int256)", "over%2528uint256%2529", "over%28uint256%29%2f", "a%2Fb", "..%2f"} {
		if status, problem := s.raw(t, "POST", base+"/apis/zoo/query/"+wrong, "application/json", `{}`); status != http.StatusNotFound {
			t.Errorf("%s: %d %s", wrong, status, problem.Detail)
		}
	}
}

func TestEventsAreAddressedBySignatureHoweverItIsEscaped(t *testing.T) {
	t.Parallel()
	s, iface, _ := zoo(t)
	base := "/api/v1/namespaces/default"
	heard := map[uuid.UUID]string{}
	listen := func(what, path, body, signature string) {
		t.Helper()
		status, answer := s.post(t, base+path, fmt.Sprintf(`{"name":"l%d"%s}`, len(heard), body))
		var l gen.ContractListener
		if status != http.StatusOK || json.Unmarshal(answer, &l) != nil || l.Event.Name != signature[:strings.Index(signature, "(")] {
			t.Fatalf("listen to %s %s: %d %s", signature, what, status, answer)
		}
		heard[l.ID] = signature
	}
	signatures := []string{
		"Over(uint256)", "Over(string)", "Lists(uint256[],uint256[2][],(int256,int256)[],string[])",
		"IndexedTuple((int256,int256),(string,(int256,int256)[],bytes4,uint8,bool[2]))",
	}
	for _, signature := range signatures {
		for how, spelling := range spellings(signature) {
			listen(how, "/apis/zoo/listeners/"+spelling, "", signature)
		}
		listen("at the interface", "/contracts/interfaces/"+iface.ID.String()+"/listeners/"+spellings(signature)["escaped"], "", signature)
		listen("in the body", "/contracts/listeners", `,"interface":{"id":"`+iface.ID.String()+`"},"eventPath":"`+signature+`"`, signature)
	}
	socket := s.connect(t, "namespace=default&ephemeral&autoack&filter.events=blockchain_event_received&firstevent=oldest")
	s.invoke(t, "zoo", "emitAll()", `{}`)
	for n := len(heard); n > 0; n-- {
		e := socket.event(t).Blockchainevent
		want, waiting := heard[e.Listener]
		if delete(heard, e.Listener); !waiting || e.Info["signature"] != want {
			t.Errorf("the listener of %q heard %v", want, e.Info)
		}
	}
}
