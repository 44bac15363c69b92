// SPDX-License-Identifier: Apache-2.0
pragma solidity 0.8.30;

/// @title The meeting point of a network of members.
/// @notice Members register here, and pin their batches of broadcasts here. The order of the BatchPin events on the chain is the
/// order in which every member applies the batches. Nothing of a batch is kept in storage: the events are the record.
contract Pactwire {
    event MemberSet(address indexed account, string name, string url);
    event MemberRotated(address indexed from, address indexed to);
    event MemberRemoved(address indexed account);
    event AdminTransferred(address indexed from, address indexed to);

    /// @param network keccak256 of the name that the network's members agree on for a namespace
    /// @param batchId the batch's UUID
    /// @param batchHash SHA-256 over the batch's canonical JSON
    /// @param location where the payload lies in shared storage; empty when it is in payload or in chunks
    /// @param payload the batch itself, where the chain is the shared storage
    event BatchPin(
        address indexed author, bytes32 indexed network, bytes16 batchId, bytes32 batchHash, string location, bytes payload
    );

    /// @notice One part of a payload that is too large for the pin's own transaction. All parts come before the pin.
    event BatchChunk(address indexed author, bytes32 indexed network, bytes16 batchId, uint32 index, bytes data);

    error NotAdmin();
    error NotMember();
    error AlreadyMember();
    error NameTaken();
    error EmptyName();

    address public admin;

    /// @notice A registered member's name; empty for everybody else.
    mapping(address account => string name) public memberName;

    mapping(bytes32 nameHash => bool taken) private names;

    modifier onlyAdmin() {
        if (msg.sender != admin) revert NotAdmin();
        _;
    }

    modifier onlyMember() {
        if (bytes(memberName[msg.sender]).length == 0) revert NotMember();
        _;
    }

    /// @notice The deployer is the admin and the first member.
    constructor(string memory name, string memory url) {
        admin = msg.sender;
        register(msg.sender, name, url);
    }

    /// @notice The version of this contract's functions and events.
    function version() external pure returns (uint16) {
        return 1;
    }

    function isMember(address account) external view returns (bool) {
        return bytes(memberName[account]).length != 0;
    }

    function addMember(address account, string calldata name, string calldata url) external onlyAdmin {
        register(account, name, url);
    }

    /// @notice A member moves to another key; its name stays.
    function rotateMember(address newAccount) external onlyMember {
        if (bytes(memberName[newAccount]).length != 0) revert AlreadyMember();
        memberName[newAccount] = memberName[msg.sender];
        delete memberName[msg.sender];
        if (msg.sender == admin) {
            admin = newAccount;
            emit AdminTransferred(msg.sender, newAccount);
        }
        emit MemberRotated(msg.sender, newAccount);
    }

    /// @notice A member tells its new public address.
    function updateMember(string calldata url) external onlyMember {
        emit MemberSet(msg.sender, memberName[msg.sender], url);
    }

    function removeMember(address account) external onlyAdmin {
        string memory name = memberName[account];
        if (bytes(name).length == 0) revert NotMember();
        delete names[keccak256(bytes(name))];
        delete memberName[account];
        emit MemberRemoved(account);
    }

    function transferAdmin(address to) external onlyAdmin {
        admin = to;
        emit AdminTransferred(msg.sender, to);
    }

    function pin(
        bytes32 network,
        bytes16 batchId,
        bytes32 batchHash,
        string calldata location,
        bytes calldata payload
    ) external onlyMember {
        emit BatchPin(msg.sender, network, batchId, batchHash, location, payload);
    }

    function chunk(bytes32 network, bytes16 batchId, uint32 index, bytes calldata data) external onlyMember {
        emit BatchChunk(msg.sender, network, batchId, index, data);
    }

    function register(address account, string memory name, string memory url) private {
        if (bytes(name).length == 0) revert EmptyName();
        if (bytes(memberName[account]).length != 0) revert AlreadyMember();
        bytes32 nameHash = keccak256(bytes(name));
        if (names[nameHash]) revert NameTaken();
        names[nameHash] = true;
        memberName[account] = name;
        emit MemberSet(account, name, url);
    }
}
