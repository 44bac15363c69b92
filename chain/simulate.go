package chain

import (
	"context"
	"encoding/json"
	"errors"
	"strings"

	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/common/hexutil"
	"github.com/ethereum/go-ethereum/rpc"
)

// Simulation is what a transaction would do.
type Simulation struct {
	Output          []byte
	Logs            []SimulatedLog
	LogsUnavailable string // why the logs are not known; empty when they are
	GasUsed         uint64 // 0 when the node does not tell
	Block           *uint64
}

// SimulatedLog is a log that would be written.
type SimulatedLog struct {
	Address common.Address `json:"address"`
	Topics  []common.Hash  `json:"topics"`
	Data    hexutil.Bytes  `json:"data"`
}

// Simulate tries the request as a transaction on the newest state. Nodes differ in what they can do: eth_simulateV1 tells everything, debug_traceCall the logs,
// eth_call the output only. A revert comes back as *RevertError.
func (c *Client) Simulate(ctx context.Context, r CallRequest) (Simulation, error) {
	sim, err := c.simulateV1(ctx, r)
	if !notOffered(err) {
		return sim, err
	}
	if sim, err = c.traceCall(ctx, r); !notOffered(err) {
		return sim, err
	}
	output, err := c.Call(ctx, r)
	return Simulation{Output: output, LogsUnavailable: "The chain's node offers neither eth_simulateV1 nor debug_traceCall."}, err
}

// notOffered tells whether the node refused because it does not offer the method, or does not understand its arguments.
func notOffered(err error) bool {
	var refusal rpc.Error
	if !errors.As(err, &refusal) {
		return false
	}
	if code := refusal.ErrorCode(); code == -32601 || code == -32602 || code == -32600 || code == -32004 {
		return true
	}
	lower := strings.ToLower(refusal.Error())
	for _, text := range []string{"method not found", "does not exist", "not supported", "unsupported", "not available", "not enabled", "not allowed", "unknown method", "unknown field"} {
		if strings.Contains(lower, text) {
			return true
		}
	}
	return false
}

func (c *Client) simulateV1(ctx context.Context, r CallRequest) (Simulation, error) {
	type call struct {
		ReturnData hexutil.Bytes  `json:"returnData"`
		Logs       []SimulatedLog `json:"logs"`
		GasUsed    hexutil.Uint64 `json:"gasUsed"`
		Status     hexutil.Uint64 `json:"status"`
		Error      *struct {
			Message string `json:"message"`
			Data    string `json:"data"`
		} `json:"error"`
	}
	var blocks []struct {
		Number hexutil.Uint64 `json:"number"`
		Calls  []call         `json:"calls"`
	}
	r.GasPrice, r.MaxFeePerGas, r.MaxPriorityFeePerGas = nil, nil, nil // what it costs is told apart from what it does
	payload := map[string]any{"blockStateCalls": []any{map[string]any{"calls": []any{r}}}}
	if err := c.CallContext(ctx, &blocks, "eth_simulateV1", payload, r.block()); err != nil {
		if notOffered(err) {
			return Simulation{}, err
		}
		return Simulation{}, callError(err)
	}
	if len(blocks) != 1 || len(blocks[0].Calls) != 1 {
		return Simulation{}, badUpstream(errors.New("eth_simulateV1 answered something else than one call"), "The chain's node gave an answer that makes no sense.")
	}
	got := blocks[0].Calls[0]
	if got.Status == 0 {
		revert := &RevertError{Data: got.ReturnData, Message: "execution reverted"}
		if got.Error != nil {
			revert.Message = got.Error.Message
			if data, err := hexutil.Decode(got.Error.Data); err == nil && len(revert.Data) == 0 {
				revert.Data = data
			}
		}
		return Simulation{}, revert
	}
	at := uint64(blocks[0].Number)
	if at > 0 {
		at-- // the simulated block stands on this one
	}
	return Simulation{Output: got.ReturnData, Logs: got.Logs, GasUsed: uint64(got.GasUsed), Block: &at}, nil
}

// traced is a frame of geth's callTracer.
type traced struct {
	Output  hexutil.Bytes  `json:"output"`
	GasUsed hexutil.Uint64 `json:"gasUsed"`
	Error   string         `json:"error"`
	Calls   []traced       `json:"calls"`
	Logs    []struct {
		SimulatedLog
		Position json.RawMessage `json:"position"` // how many of the calls came before it
	} `json:"logs"`
}

func (c *Client) traceCall(ctx context.Context, r CallRequest) (Simulation, error) {
	var frame traced
	r.GasPrice, r.MaxFeePerGas, r.MaxPriorityFeePerGas = nil, nil, nil
	config := map[string]any{"tracer": "callTracer", "tracerConfig": map[string]any{"withLog": true}}
	if err := c.CallContext(ctx, &frame, "debug_traceCall", r, r.block(), config); err != nil {
		if notOffered(err) {
			return Simulation{}, err
		}
		return Simulation{}, callError(err)
	}
	if frame.Error != "" {
		return Simulation{}, &RevertError{Data: frame.Output, Message: frame.Error}
	}
	return Simulation{Output: frame.Output, Logs: frame.logs(nil), GasUsed: uint64(frame.GasUsed)}, nil
}

// logs are those of the frame and of what it called, in the order in which they are written.
func (f *traced) logs(all []SimulatedLog) []SimulatedLog {
	if f.Error != "" {
		return all
	}
	next := 0
	for i := range f.Logs {
		var position hexutil.Uint64
		if json.Unmarshal(f.Logs[i].Position, &position) != nil {
			position = 0
		}
		for ; next < len(f.Calls) && next < int(position); next++ { //nolint:gosec // bounded by the calls
			all = f.Calls[next].logs(all)
		}
		all = append(all, f.Logs[i].SimulatedLog)
	}
	for ; next < len(f.Calls); next++ {
		all = f.Calls[next].logs(all)
	}
	return all
}
