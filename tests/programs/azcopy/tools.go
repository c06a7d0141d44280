//go:build tools

// Package tools names AzCopy, so that its version is pinned by this module.
package tools

import _ "github.com/Azure/azure-storage-azcopy/v10"
