// The form of an API key: what nothing that a gateway prints may show. Tests present keys to every gateway that they start.

export const keyForm = /svc_(?:live|test)_[0-9A-Za-z]{38}/
