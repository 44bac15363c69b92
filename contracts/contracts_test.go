package contracts_test

import (
	"bytes"
	"context"
	"math/big"
	"strings"
	"testing"

	"github.com/ethereum/go-ethereum"
	"github.com/ethereum/go-ethereum/common"
	"github.com/ethereum/go-ethereum/core/types"
	"github.com/ethereum/go-ethereum/crypto"
	"github.com/ethereum/go-ethereum/rpc"

	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/internal/chaintest"
)

func TestEveryArtifactReads(t *testing.T) {
	t.Parallel()
	for _, artifact := range []contracts.Artifact{contracts.Pactwire(), contracts.SimpleStorage(), contracts.Zoo()} {
		if artifact.Name == "" || len(artifact.Bytecode) < 100 || len(artifact.Parsed.Methods) == 0 {
			t.Errorf("%q is empty", artifact.Name)
		}
		// PUSH0 would keep it off chains without the Shanghai fork. It may stand in data, but not in the first instructions.
		if artifact.Bytecode[0] != 0x60 {
			t.Errorf("%s starts with opcode %x", artifact.Name, artifact.Bytecode[0])
		}
	}
	if _, err := contracts.Parse([]byte(`{"abi": 5}`)); err == nil {
		t.Error("a broken artifact was read")
	}
	if _, err := contracts.Pactwire().DeployData("only one argument"); err == nil {
		t.Error("wrong constructor arguments were taken")
	}
}

// network is the pin contract on a chain, called by account number.
type network struct {
	*chaintest.Chain
	contract contracts.Artifact
	address  common.Address
}

func deploy(t *testing.T) network {
	t.Helper()
	chain := chaintest.New(t)
	return network{Chain: chain, contract: contracts.Pactwire(), address: chain.DeployAs(t, 0, contracts.Pactwire(), "founder", "https://founder.example")}
}

func (n network) must(t *testing.T, account int, method string, args ...any) *types.Log {
	t.Helper()
	receipt := n.Transact(t, account, n.address, n.contract, method, args...)
	if receipt.Status != types.ReceiptStatusSuccessful || len(receipt.Logs) == 0 {
		t.Fatalf("%s: status %d, %d logs", method, receipt.Status, len(receipt.Logs))
	}
	return receipt.Logs[len(receipt.Logs)-1]
}

// refused checks that the call reverts with the custom error.
func (n network) refused(t *testing.T, want string, account int, method string, args ...any) {
	t.Helper()
	data, err := n.contract.Parsed.Pack(method, args...)
	if err != nil {
		t.Fatal(err)
	}
	_, err = n.Client().CallContract(context.Background(), ethereum.CallMsg{From: n.Accounts[account].Address, To: &n.address, Data: data}, nil)
	id := n.contract.Parsed.Errors[want].ID
	failure, ok := err.(rpc.DataError)
	if !ok {
		t.Errorf("%s: got %v, want %s", method, err, want)
		return
	}
	if text, _ := failure.ErrorData().(string); !strings.EqualFold(text, "0x"+common.Bytes2Hex(id[:4])) {
		t.Errorf("%s: reverted with %s, want %s", method, text, want)
	}
}

func (n network) isMember(t *testing.T, account int) bool {
	t.Helper()
	data, err := n.contract.Parsed.Pack("isMember", n.Accounts[account].Address)
	if err != nil {
		t.Fatal(err)
	}
	out, err := n.Client().CallContract(context.Background(), ethereum.CallMsg{To: &n.address, Data: data}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return new(big.Int).SetBytes(out).Sign() != 0
}

func TestPinsComeFromMembersOnly(t *testing.T) {
	t.Parallel()
	n := deploy(t)
	networkID := crypto.Keccak256Hash([]byte("default"))
	batch, hash, payload := [16]byte{1, 2, 3}, [32]byte{4, 5}, bytes.Repeat([]byte{7}, 5000)

	log := n.must(t, 0, "pin", networkID, batch, hash, "", payload)
	if log.Topics[0] != n.contract.Parsed.Events["BatchPin"].ID || log.Topics[2] != networkID ||
		common.BytesToAddress(log.Topics[1][:]) != n.Accounts[0].Address {
		t.Errorf("topics %v", log.Topics)
	}
	values, err := n.contract.Parsed.Unpack("BatchPin", log.Data)
	if err != nil {
		t.Fatal(err)
	}
	if values[0] != batch || values[1] != hash || values[2] != "" || !bytes.Equal(values[3].([]byte), payload) {
		t.Errorf("data %v", values[:3])
	}
	n.refused(t, "NotMember", 1, "pin", networkID, batch, hash, "", payload)
	n.refused(t, "NotMember", 1, "chunk", networkID, batch, uint32(0), payload)

	log = n.must(t, 0, "chunk", networkID, batch, uint32(3), payload)
	values, err = n.contract.Parsed.Unpack("BatchChunk", log.Data)
	if err != nil {
		t.Fatal(err)
	}
	if values[0] != batch || values[1] != uint32(3) || !bytes.Equal(values[2].([]byte), payload) {
		t.Errorf("data %v", values[:2])
	}
	// A pin stores nothing: beyond the transaction, its data (16 gas a byte) and the log (8 a byte) there is little.
	receipt := n.Transact(t, 0, n.address, n.contract, "pin", networkID, batch, hash, "ipfs://x", []byte{})
	if receipt.GasUsed > 40_000 {
		t.Errorf("an empty pin costs %d gas", receipt.GasUsed)
	}
	t.Logf("an empty pin costs %d gas", receipt.GasUsed)
}

func TestMembersComeMoveAndGo(t *testing.T) {
	t.Parallel()
	n := deploy(t)
	account := func(i int) common.Address { return n.Accounts[i].Address }
	if !n.isMember(t, 0) || n.isMember(t, 1) {
		t.Error("the deployer, and only the deployer, is a member at first")
	}
	n.refused(t, "NotAdmin", 1, "addMember", account(1), "one", "")
	n.refused(t, "EmptyName", 0, "addMember", account(1), "", "")
	n.refused(t, "NameTaken", 0, "addMember", account(1), "founder", "")
	n.refused(t, "AlreadyMember", 0, "addMember", account(0), "other", "")

	log := n.must(t, 0, "addMember", account(1), "one", "https://one.example")
	if values, err := n.contract.Parsed.Unpack("MemberSet", log.Data); err != nil || values[0] != "one" || values[1] != "https://one.example" {
		t.Errorf("MemberSet %v, %v", values, err)
	}
	log = n.must(t, 1, "updateMember", "https://moved.example")
	if values, err := n.contract.Parsed.Unpack("MemberSet", log.Data); err != nil || values[0] != "one" || values[1] != "https://moved.example" {
		t.Errorf("MemberSet %v, %v", values, err)
	}
	n.refused(t, "NotMember", 2, "updateMember", "x")

	n.refused(t, "AlreadyMember", 1, "rotateMember", account(0))
	n.refused(t, "NotMember", 2, "rotateMember", account(3))
	n.must(t, 1, "rotateMember", account(2))
	if n.isMember(t, 1) || !n.isMember(t, 2) {
		t.Error("the key did not rotate")
	}
	n.refused(t, "NameTaken", 0, "addMember", account(1), "one", "") // the name went along

	n.refused(t, "NotAdmin", 2, "removeMember", account(2))
	n.refused(t, "NotMember", 0, "removeMember", account(1))
	n.must(t, 0, "removeMember", account(2))
	if n.isMember(t, 2) {
		t.Error("the member is still there")
	}
	n.must(t, 0, "addMember", account(1), "one", "") // the name is free again

	// The admin's own rotation takes the role along.
	n.must(t, 0, "rotateMember", account(5))
	n.refused(t, "NotAdmin", 0, "addMember", account(3), "three", "")
	n.must(t, 5, "addMember", account(3), "three", "")
	n.must(t, 5, "transferAdmin", account(3))
	n.must(t, 3, "addMember", account(4), "four", "")
}
