// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @title One number that anybody may set: the contract of the quick start.
contract SimpleStorage {
    uint256 x;

    event Changed(address indexed from, uint256 value);

    function set(uint256 newValue) public {
        x = newValue;
        emit Changed(msg.sender, newValue);
    }

    function get() public view returns (uint256) {
        return x;
    }
}
