package multiparty

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strconv"

	"github.com/ethereum/go-ethereum/common"

	pactwire "github.com/pactwire/pactwire"
	"github.com/pactwire/pactwire/chain"
	"github.com/pactwire/pactwire/contracts"
	"github.com/pactwire/pactwire/store"
)

// pinContractVersion is the version of the pin contract that this package speaks to.
const pinContractVersion = 1

// CheckPinContract makes sure that there is a pin contract of the right version at the address.
func CheckPinContract(ctx context.Context, client *chain.Client, address common.Address) error {
	data, err := pinABI().Pack("version")
	if err != nil {
		return fmt.Errorf("encode the question for the version: %w", err)
	}
	answer, err := client.Call(ctx, chain.CallRequest{To: address, Data: data})
	var revert *chain.RevertError
	if err != nil && !errors.As(err, &revert) {
		return fmt.Errorf("ask the pin contract %s for its version: %w", address, err)
	}
	if len(answer) == 0 {
		return pactwire.Conflict("pin_contract_missing",
			"There is no pin contract at %s on chain %s. Deploy contracts/src/Pactwire.sol and configure its address.", address, client.Name())
	}
	values, err := pinABI().Unpack("version", answer)
	if err != nil || len(values) != 1 || values[0] != uint16(pinContractVersion) {
		return pactwire.Conflict("pin_contract_version", "The contract at %s on chain %s is not a pin contract of version %d.", address, client.Name(),
			pinContractVersion)
	}
	return nil
}

// Deployment says how the pin contract is deployed where there is none: on a development chain.
type Deployment struct {
	Namespace string // whose operation it is
	Chain     string
	Key       common.Address // becomes the admin and the first member
	Name      string         // of the member
	URL       string         // of the member
}

// EnsurePinContract returns the chain's pin contract. Where none is recorded, it is deployed through the outbox, so that the chain's submitter must be running,
// and recorded. A crash on the way does not deploy it twice: the operation is found again by its idempotency key.
func EnsurePinContract(ctx context.Context, d Deployment, db *store.DB, client *chain.Client) (common.Address, error) {
	known, err := db.Chain(ctx, d.Chain)
	if err != nil {
		return common.Address{}, err //nolint:wrapcheck // it says what it did
	}
	if len(known.PinContract) > 0 {
		address := common.BytesToAddress(known.PinContract)
		return address, CheckPinContract(ctx, client, address)
	}
	data, err := contracts.Pactwire().DeployData(d.Name, d.URL)
	if err != nil {
		return common.Address{}, fmt.Errorf("deploy the pin contract: %w", err)
	}
	gas, err := client.EstimateGas(ctx, chain.CallRequest{From: &d.Key, Create: true, Data: data})
	if err != nil {
		return common.Address{}, fmt.Errorf("estimate the deployment of the pin contract: %w", err)
	}
	hash := sha256.Sum256(data)
	for try := 0; ; try++ {
		op, _, err := db.CreateOperation(ctx, store.NewOperation{
			Namespace: d.Namespace, Type: store.OpDeploy, Chain: d.Chain, Key: d.Key, Data: data, Gas: gas,
			Input: []byte(`{"contract":"Pactwire"}`), IdempotencyKey: "deploy-pin-contract-" + d.Chain + "-" + strconv.Itoa(try), BodyHash: hash[:],
		})
		if pactwire.KindOf(err) == pactwire.KindConflict && try < 1000 {
			continue // one with another name or URL, before
		}
		if err != nil {
			return common.Address{}, fmt.Errorf("deploy the pin contract: %w", err)
		}
		if op, err = db.AwaitOperation(ctx, op.ID); err != nil {
			return common.Address{}, err
		}
		mined, ok := op.Mined()
		if op.Status == store.OpFailed && try < 3 {
			continue
		}
		if op.Status == store.OpFailed || !ok {
			return common.Address{}, fmt.Errorf("deploy the pin contract: operation %s ended %s: %s", op.ID, op.Status, op.Error)
		}
		block, err := strconv.ParseInt(mined.BlockNumber, 10, 64)
		if err != nil {
			return common.Address{}, fmt.Errorf("read the block of the pin contract: %w", err)
		}
		address := common.HexToAddress(mined.ContractAddress)
		if err := CheckPinContract(ctx, client, address); err != nil {
			return common.Address{}, err
		}
		return address, db.SetPinContract(ctx, d.Chain, address, block) //nolint:wrapcheck // it says what it did
	}
}
