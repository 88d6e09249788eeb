//! Rules about differences from an earlier list of tools.

rules! { Changes;
    TOOL_REMOVED = "tool-removed", Error, "Tool that was removed", NOWHERE,
        why: "Calls of recorded runs, scripts and prompts fail, and policies and approvals that name the tool apply to nothing.",
        fix: "Keep the tool under its name and mark it as deprecated in its description, or release it as a breaking change.";
    TOOL_ADDED = "tool-added", Note, "Tool that was added", NOWHERE,
        why: "Callers are not affected. Providers' prompt caches for the old list do not apply, and policies decide about the \
              new name.",
        fix: "Nothing; save the list again with --save-tools.";
    INPUT_NARROWED = "input-narrowed", Error, "Arguments that are no longer accepted", NOWHERE,
        why: "Calls that worked with the earlier version fail: a new required property, one that is refused, or a narrower \
              type.",
        fix: "Make new properties optional with a default, and keep the old ones.";
    INPUT_IGNORED = "input-ignored", Warning, "Argument that no longer has a meaning", NOWHERE,
        why: "Calls that worked with the earlier version still succeed, because the schema allows undeclared properties, and \
              do something else: the server does not read the argument any more, and the caller does not learn about it.",
        fix: "Keep the property, or set `additionalProperties: false` and release the removal as a breaking change.";
    INPUT_WIDENED = "input-widened", Note, "Arguments that are new or wider", NOWHERE,
        why: "Earlier calls still work. Approvals that are bound to the definition have to be given again.",
        fix: "Nothing; save the list again with --save-tools.";
    OUTPUT_CHANGED = "output-changed", Warning, "Output schema that changed", NOWHERE,
        why: "Programs that read structured content may miss members that they rely on.",
        fix: "Add members and keep the old ones.";
    ANNOTATIONS_CHANGED = "annotations-changed", Warning, "Annotations that changed", NOWHERE,
        why: "Clients decide by annotations whether a call needs an approval, so calls become more or less supervised.",
        fix: "State the change in the release notes.";
    DESCRIPTION_CHANGED = "description-changed", Note, "Description that changed", NOWHERE,
        why: "Models choose tools by their descriptions, and clients that pin a definition ask for approval again. Providers' \
              prompt caches for the old text do not apply.",
        fix: "Run your scenarios again, and save the list with --save-tools.";
    ORDER_CHANGED = "order-changed", Note, "Order of tools that changed", NOWHERE,
        why: "Callers are not affected. Providers' prompt caches for the old order do not apply.",
        fix: "Sort the tools, for example by name.";
}
