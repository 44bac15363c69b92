package e2e

import (
	"encoding/json"
	"math/big"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/ethereum/go-ethereum/common"
	"github.com/google/uuid"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/gen"
)

// storage starts a service with the API "simple" of a deployed SimpleStorage.
func storage(t testing.TB) (*service, string, uuid.UUID) {
	t.Helper()
	s := start(t)
	address := s.chain.Deploy(t, contracts.SimpleStorage()).Hex()
	iface := s.broadcast(t, "storage", "1", contracts.SimpleStorage().ABI)
	s.createAPI(t, "simple", *iface.ID, &address)
	return s, address, *iface.ID
}

// accept invokes without waiting for the outcome.
func (s *service) accept(t testing.TB, method, input string) uuid.UUID {
	t.Helper()
	r, err := s.client.InvokeContractAPIWithResponse(t.Context(), ns, "simple", method, &gen.InvokeContractAPIParams{}, gen.InvokeRequest{Input: json.RawMessage(input)})
	must(t, err)
	if r.JSON202 == nil {
		t.Fatalf("invoke: %s %s", r.Status(), r.Body)
	}
	return r.JSON202.ID
}

func (s *service) operation(t testing.TB, id uuid.UUID) gen.Operation {
	t.Helper()
	r, err := s.client.GetOperationWithResponse(t.Context(), ns, id)
	must(t, err)
	if r.JSON200 == nil {
		t.Fatalf("get operation %s: %s", id, r.Body)
	}
	return *r.JSON200
}

// sent waits until the operation has been signed so often.
func (s *service) sent(t testing.TB, id uuid.UUID, attempts int) gen.Operation {
	t.Helper()
	var op gen.Operation
	eventually(t, 20*time.Second, "the operation is signed", func() bool {
		op = s.operation(t, id)
		return len(op.Attempts) >= attempts
	}, &lines{})
	return op
}

func TestOperationsAreCancelledSpedUpAndDoneAgain(t *testing.T) {
	t.Parallel()
	s, _, _ := storage(t)
	s.chain.SetAutomine(false)
	first, second := s.accept(t, "set", `{"newValue":1}`), s.accept(t, "set", `{"newValue":2}`)
	s.sent(t, first, 1)
	s.sent(t, second, 1)

	tooLow, err := s.client.SpeedUpOperationWithResponse(t.Context(), ns, second, &gen.SpeedUpOperationParams{},
		gen.OperationChange{Options: json.RawMessage(`{"maxFeePerGas":1,"maxPriorityFeePerGas":1}`)})
	must(t, err)
	if tooLow.StatusCode() != http.StatusBadRequest || !strings.Contains(string(tooLow.Body), "options.max") {
		t.Errorf("a lower fee: %s %s", tooLow.Status(), tooLow.Body)
	}
	odd, err := s.client.SpeedUpOperationWithResponse(t.Context(), ns, second, &gen.SpeedUpOperationParams{}, gen.OperationChange{Options: json.RawMessage(`{"nonce":1}`)})
	must(t, err)
	if odd.StatusCode() != http.StatusBadRequest {
		t.Errorf("a nonce for a speed-up: %s %s", odd.Status(), odd.Body)
	}
	faster, err := s.client.SpeedUpOperationWithResponse(t.Context(), ns, second, &gen.SpeedUpOperationParams{}, gen.OperationChange{})
	must(t, err)
	if faster.JSON202 == nil || faster.JSON202.ID != second {
		t.Fatalf("speed up: %s %s", faster.Status(), faster.Body)
	}
	s.sent(t, second, 2)
	cancelled, err := s.client.CancelOperationWithResponse(t.Context(), ns, first, &gen.CancelOperationParams{}, gen.OperationChange{})
	must(t, err)
	if cancelled.JSON202 == nil {
		t.Fatalf("cancel: %s %s", cancelled.Status(), cancelled.Body)
	}
	s.sent(t, first, 2)
	s.chain.SetAutomine(true)
	s.chain.Mine(1)
	var op gen.Operation
	eventually(t, 20*time.Second, "the cancelled operation ends", func() bool {
		op = s.operation(t, first)
		return op.Status == "Failed"
	}, &lines{})
	if !strings.HasPrefix(*op.Error, "cancelled") || len(op.Attempts) != 2 || *op.Attempts[1].Reason != "cancel" || op.Attempts[0].MaxFeePerGas == nil ||
		op.Attempts[0].Created == nil || *op.TransactionHash != op.Attempts[1].TransactionHash {
		t.Errorf("the cancelled operation is %+v", op)
	}
	eventually(t, 20*time.Second, "the other one ends", func() bool { return s.operation(t, second).Status == "Succeeded" }, &lines{})
	if got := s.query(t, "simple", "get", `{}`); got != `{"output":"2"}` {
		t.Errorf("get = %s", got)
	}
	late, err := s.client.CancelOperationWithResponse(t.Context(), ns, second, &gen.CancelOperationParams{}, gen.OperationChange{})
	must(t, err)
	if late.StatusCode() != http.StatusConflict {
		t.Errorf("cancel what has ended: %s %s", late.Status(), late.Body)
	}

	again, err := s.client.RetryOperationWithResponse(t.Context(), ns, first, &gen.RetryOperationParams{Confirm: ptr(true)})
	must(t, err)
	if again.JSON200 == nil || again.JSON200.Status != "Succeeded" || again.JSON200.ID == first || again.JSON200.Tx != op.Tx {
		t.Fatalf("retry: %s %s", again.Status(), again.Body)
	}
	if got := s.query(t, "simple", "get", `{}`); got != `{"output":"1"}` {
		t.Errorf("after the retry get = %s", got)
	}
	if op = s.operation(t, first); op.Retry == nil || *op.Retry != again.JSON200.ID {
		t.Errorf("the retried operation is %+v", op)
	}
	for id, want := range map[uuid.UUID]int{first: http.StatusConflict, second: http.StatusConflict, uuid.New(): http.StatusNotFound} {
		r, err := s.client.RetryOperationWithResponse(t.Context(), ns, id, &gen.RetryOperationParams{})
		must(t, err)
		if r.StatusCode() != want {
			t.Errorf("retry of %s: %s %s, want %d", id, r.Status(), r.Body, want)
		}
	}
	missing, err := s.client.CancelOperationWithResponse(t.Context(), ns, uuid.New(), &gen.CancelOperationParams{}, gen.OperationChange{})
	must(t, err)
	if missing.StatusCode() != http.StatusNotFound {
		t.Errorf("cancel what is not there: %s %s", missing.Status(), missing.Body)
	}
	status, err := s.client.GetStatusWithResponse(t.Context(), ns)
	must(t, err)
	if keys := status.JSON200.Chain.Keys; len(keys) != 1 || !keys[0].Held || keys[0].Unsent+keys[0].Unmined != 0 {
		t.Errorf("the keys are %s", status.Body)
	}
}

func TestDryRun(t *testing.T) {
	t.Parallel()
	s, address, iface := storage(t)
	dry := &gen.InvokeContractAPIParams{DryRun: ptr(true)}
	r, err := s.client.InvokeContractAPIWithResponse(t.Context(), ns, "simple", "set", dry, gen.InvokeRequest{Input: json.RawMessage(`{"newValue":5}`)})
	must(t, err)
	d := r.ApplicationVndPactwireDryrunJSON200
	if d == nil || !d.Succeeds || len(d.Logs) != 1 || d.Gas == nil || d.GasUsed == nil || d.Fee == nil || d.Fee.MaxFeePerGas == nil {
		t.Fatalf("dry run: %s %s", r.Status(), r.Body)
	}
	if l := d.Logs[0]; *l.Name != "Changed" || !strings.Contains(string(l.Output), `"value":"5"`) || !strings.EqualFold(l.Address, address) {
		t.Errorf("the log is %s", r.Body)
	}
	operations, err := s.client.ListOperationsWithResponse(t.Context(), ns, &gen.ListOperationsParams{Type: ptr("blockchain_invoke")})
	must(t, err)
	if len(*operations.JSON200) != 0 {
		t.Errorf("a dry run left %s", operations.Body)
	}
	if got := s.query(t, "simple", "get", `{}`); got != `{"output":"0"}` {
		t.Errorf("get = %s", got)
	}
	byInterface, err := s.client.InvokeContractInterfaceWithResponse(t.Context(), ns, iface, "set", &gen.InvokeContractInterfaceParams{DryRun: ptr(true)},
		gen.InvokeRequest{Location: &gen.Location{Address: address}, Input: json.RawMessage(`{"newValue":5}`)})
	must(t, err)
	if d := byInterface.ApplicationVndPactwireDryrunJSON200; d == nil || len(d.Logs) != 1 || d.Logs[0].Name == nil {
		t.Errorf("at the interface: %s %s", byInterface.Status(), byInterface.Body)
	}

	// A method with a return value, and one that reverts.
	zoo := s.chain.Deploy(t, contracts.Zoo(), "zoo").Hex()
	z := s.broadcast(t, "zoo", "1", contracts.Zoo().ABI)
	s.createAPI(t, "zoo", *z.ID, &zoo)
	s.chain.Transact(t, 1, common.HexToAddress(zoo), contracts.Zoo(), "claim", big.NewInt(9))
	refused, err := s.client.InvokeContractAPIWithResponse(t.Context(), ns, "zoo", "claim", dry, gen.InvokeRequest{Input: json.RawMessage(`{"id":9}`)})
	must(t, err)
	if d := refused.ApplicationVndPactwireDryrunJSON200; d == nil || d.Succeeds || d.Revert == nil || *d.Revert.Name != "Denied" || !strings.Contains(*d.Error, "claimed already") {
		t.Errorf("a revert: %s %s", refused.Status(), refused.Body)
	}
	bad, err := s.client.InvokeContractAPIWithResponse(t.Context(), ns, "simple", "set", dry, gen.InvokeRequest{Input: json.RawMessage(`{"newValue":"x"}`)})
	must(t, err)
	if bad.StatusCode() != http.StatusBadRequest {
		t.Errorf("a bad input: %s %s", bad.Status(), bad.Body)
	}
}
