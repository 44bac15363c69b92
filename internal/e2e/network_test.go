package e2e

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/ethclient"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/gen"
)

// Three members as three processes with three databases on one chain, a fourth that joins late: all come to the same state, whatever happens to one of them.
func TestMembersAsProcessesAgree(t *testing.T) {
	if testing.Short() {
		t.Skip("starts the program several times")
	}
	t.Parallel()
	alice := startNetwork(t)
	bob, carol := alice.join(t, "bob", 2), alice.join(t, "carol", 3)

	// Who is not registered is told before anything is stored, and may broadcast as soon as it is.
	r, err := bob.client.BroadcastMessageWithResponse(t.Context(), ns, nil, gen.MessageInput{Data: []gen.DataInput{{Value: []byte(`1`)}}})
	must(t, err)
	if r.StatusCode() != 409 || !strings.Contains(string(r.Body), "not_a_member") {
		t.Fatalf("a stranger's broadcast was answered %s %s", r.Status(), r.Body)
	}
	if n := len(bob.all(t, "/messages?")); n != 0 {
		t.Errorf("%d messages were stored all the same", n)
	}
	if add, err := bob.client.AddMemberWithResponse(t.Context(), ns, nil, gen.MemberInput{Account: bob.account.Address.Hex(), Name: "bob"}); err != nil || add.StatusCode() != 403 {
		t.Errorf("a stranger adds itself: %s %v", add.Body, err)
	}
	alice.register(t, bob, "bob")
	alice.register(t, carol, "carol")

	members := []*service{&alice.service, &bob.service, &carol.service}
	contest(t, members)
	privateStaysPrivate(t, alice, bob)

	// One member dies while it receives.
	const flood = 300
	before := alice.confirmedMessages(t)
	for i := range flood {
		if i == flood/2 {
			carol.kill(t)
		}
		alice.say(t, fmt.Sprint("topic-", i%3), fmt.Sprintf(`{"n":%d,"big":123456789012345678901234567890,"text":"zoë \u0007 😀 <&>"}`, i), false)
	}
	carol.begin(t)
	bob.say(t, "late", `"the last one"`, true)
	total := before + flood + 1
	dave := alice.join(t, "dave", 4) // never registered: it only reads
	all := map[string]*service{"alice": &alice.service, "bob": &bob.service, "carol": &carol.service, "dave": &dave.service}
	for name, s := range all {
		eventually(t, time.Minute, name+" has all messages", func() bool { return s.confirmedMessages(t) == total }, nothing{})
	}
	want := alice.snapshot(t)
	for name, s := range all {
		got := s.snapshot(t)
		if !slices.Equal(got, want) {
			t.Errorf("%s differs from alice:\n%s", name, firstDifference(want, got))
		}
	}
	messages := dave.all(t, "/messages?fetchdata=true")
	recomputeHashes(t, messages)
	verifyByHand(t, alice, dave, messages)
}

// contest lets all members broadcast the same names and versions at the same time.
func contest(t *testing.T, members []*service) {
	t.Helper()
	const rounds = 4
	for round := range rounds {
		var mu sync.Mutex
		var winners []string
		var group sync.WaitGroup
		for i, s := range members {
			group.Go(func() {
				abi := contracts.SimpleStorage().ABI
				if i == 1 {
					abi = contracts.Zoo().ABI // other members, other contents
				}
				generated := s.generate(t, abi)
				raw, err := json.Marshal(generated)
				must(t, err)
				var input gen.ContractInterfaceInput
				must(t, json.Unmarshal(raw, &input))
				input.Name, input.Version = "contested", fmt.Sprint(round)
				answer, err := s.client.CreateContractInterfaceWithResponse(t.Context(), ns, &gen.CreateContractInterfaceParams{Confirm: ptr(true)}, input)
				must(t, err)
				switch {
				case answer.JSON200 != nil:
					mu.Lock()
					winners = append(winners, answer.JSON200.ID.String())
					mu.Unlock()
				case answer.StatusCode() != 409:
					t.Errorf("round %d: %s %s", round, answer.Status(), answer.Body)
				}
			})
		}
		group.Wait()
		if len(winners) != 1 {
			t.Fatalf("round %d has the winners %v", round, winners)
		}
		for _, s := range members {
			eventually(t, time.Minute, "all know the winner", func() bool {
				r, err := s.client.GetContractInterfaceByNameWithResponse(t.Context(), ns, "contested", fmt.Sprint(round), nil)
				must(t, err)
				return r.JSON200 != nil && r.JSON200.ID.String() == winners[0]
			}, nothing{})
		}
	}
}

// privateStaysPrivate checks that a location that is given with a request is told to no other member: not in a payload on the chain, and not by its API.
func privateStaysPrivate(t *testing.T, alice *founder, bob *member) {
	t.Helper()
	address := strings.ToLower(alice.deploy(t, "contracts/artifacts/SimpleStorage.json"))
	iface := alice.broadcast(t, "private", "1", contracts.SimpleStorage().ABI)
	atInterface, err := alice.client.InvokeContractInterfaceWithResponse(t.Context(), ns, *iface.ID, "set", &gen.InvokeContractInterfaceParams{Confirm: ptr(true)},
		gen.InvokeRequest{Location: &gen.Location{Address: address}, Input: []byte(`{"newValue":5}`)})
	must(t, err)
	inline, err := alice.client.InvokeContractWithResponse(t.Context(), ns, &gen.InvokeContractParams{Confirm: ptr(true)}, gen.InlineInvokeRequest{
		Location: gen.Location{Address: address}, Input: []byte(`{"newValue":6}`),
		Method: gen.MethodInput{Name: "set", Params: []gen.Param{{Name: "newValue", Schema: gen.Schema{Type: ptr("integer"), Details: &gen.SchemaDetails{Type: ptr("uint256")}}}}},
	})
	must(t, err)
	if atInterface.JSON200 == nil || inline.JSON200 == nil {
		t.Fatalf("invoke: %s %s", atInterface.Body, inline.Body)
	}
	listener, err := alice.client.CreateContractInterfaceListenerWithResponse(t.Context(), ns, *iface.ID, "Changed", gen.EventListenerInput{Location: &gen.Location{Address: address}})
	must(t, err)
	if listener.JSON200 == nil {
		t.Fatalf("listen: %s", listener.Body)
	}
	alice.say(t, "t", `"so that all before is pinned"`, true)
	payloads := alice.payloads(t)
	if len(payloads) < 5 {
		t.Errorf("only %d payloads were found on the chain", len(payloads))
	}
	secret := strings.TrimPrefix(address, "0x")
	for _, payload := range payloads {
		if strings.Contains(strings.ToLower(payload), secret) {
			t.Errorf("the location is in a payload: %s", payload)
		}
	}
	for _, path := range []string{"/contracts/interfaces?", "/apis?", "/messages?fetchdata=true", "/contracts/listeners?", "/operations?", "/events?fetchreferences=true"} {
		var page json.RawMessage
		bob.read(t, path+"&limit=250", &page)
		if strings.Contains(strings.ToLower(string(page)), secret) {
			t.Errorf("another member shows the location at %s", path)
		}
	}
}

// payloads reads all batches from the chain, unpacked.
func (n *founder) payloads(t *testing.T) (out []string) {
	t.Helper()
	node, err := ethclient.DialContext(t.Context(), "http://"+n.rpc)
	must(t, err)
	defer node.Close()
	parsed := contracts.Pactwire().Parsed
	logs, err := node.FilterLogs(t.Context(), ethereum.FilterQuery{
		FromBlock: new(big.Int), Addresses: []common.Address{common.HexToAddress(n.pin)}, Topics: [][]common.Hash{{parsed.Events["BatchPin"].ID}},
	})
	must(t, err)
	for _, log := range logs {
		values, err := parsed.Unpack("BatchPin", log.Data)
		must(t, err)
		r, err := gzip.NewReader(bytes.NewReader(values[3].([]byte)))
		must(t, err)
		text, err := io.ReadAll(r)
		must(t, err)
		if got, want := sha256Hex(string(text)), fmt.Sprintf("%x", values[1]); got != want {
			t.Errorf("a payload has the hash %s, and its pin says %s", got, want)
		}
		out = append(out, string(text))
	}
	return out
}

// verifyByHand runs `pactwire message verify` against a member that did not send the messages.
func verifyByHand(t *testing.T, alice *founder, dave *member, messages []map[string]any) {
	t.Helper()
	for _, i := range []int{0, len(messages) / 2, len(messages) - 1} {
		id := messages[i]["header"].(map[string]any)["id"].(string)
		out, err := run(t, "message", "verify", id, "--url", dave.url, "--rpc-url", "http://"+alice.rpc, "--pin-contract", alice.pin)
		switch {
		case messages[i]["state"] == "confirmed" && (err != nil || !strings.Contains(out, "authentic") || strings.Contains(out, "WRONG")):
			t.Errorf("message %s: %v\n%s", id, err, out)
		case i == 0:
			t.Logf("the verdict:\n%s", out)
		}
	}
}

// A service that lies about a message is found out.
func TestVerifyFindsALie(t *testing.T) {
	t.Parallel()
	s := start(t)
	m := s.say(t, "t", `{"amount":100}`, true)
	s.say(t, "t", `{"amount":200}`, true)
	for name, lie := range map[string][2]string{
		"the truth":        {"", ""},
		"a value":          {`"amount":100`, `"amount":900`},
		"a topic":          {`"topics":["t"]`, `"topics":["u"]`},
		"the author":       {m.Header.Author, "0x70997970c51812dc3a010c7d01b50e0d17dc79c8"},
		"the message hash": {m.Hash, strings.Repeat("ab", 32)},
		"the batch":        {m.BatchID.String(), "01a1fe50-27ca-7475-a57a-33eb24eef0b2"},
	} {
		proxy := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			answer, err := http.Get(s.url + r.URL.RequestURI())
			if err != nil {
				w.WriteHeader(http.StatusBadGateway)
				return
			}
			defer answer.Body.Close()
			body, _ := io.ReadAll(answer.Body)
			w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
			if lie[0] != "" {
				body = []byte(strings.ReplaceAll(string(body), lie[0], lie[1]))
			}
			_, _ = w.Write(body)
		}))
		out, err := run(t, "message", "verify", m.Header.ID.String(), "--url", proxy.URL, "--rpc-url", s.chain.HTTPURL())
		proxy.Close()
		if (err == nil) != (lie[0] == "") {
			t.Errorf("%s: %v\n%s", name, err, out)
		}
	}
}

func firstDifference(a, b []string) string {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] + "\n" + b[i]
		}
	}
	return fmt.Sprintf("%d and %d entries", len(a), len(b))
}
