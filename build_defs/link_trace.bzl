"""`link_trace`: the files that the linker reads for an extension, as lld's --trace prints them, to compare with a wheel's components."""

_LinkInfo = provider(doc = "The link of a target.", fields = {"action": "The action CppLink."})

def _find_link_impl(target, ctx):
    (action,) = [action for action in target.actions if action.mnemonic == "CppLink"]
    return [_LinkInfo(action = action)]

_find_link = aspect(implementation = _find_link_impl, doc = "Passes on the link of a target.")

def _link_trace_impl(ctx):
    action = ctx.attr.extension[_LinkInfo].action
    trace = ctx.actions.declare_file(ctx.label.name + ".txt")
    ctx.actions.run_shell(
        # Again, into a file that is not kept: the link of a cc_binary has one output.
        command = 'trace=$1; shift; "$@" -Wl,--trace -o "$trace.so" > "$trace"',
        # They are all there twice: one by one, and in a file.
        arguments = [trace.path] + [argument for argument in action.argv if not argument.startswith("@")],
        inputs = action.inputs,
        outputs = [trace],
        mnemonic = "LinkTrace",
        progress_message = "Linking %s again, to see what is read" % ctx.attr.extension.label,
    )
    return [DefaultInfo(files = depset([trace]), runfiles = ctx.runfiles(files = [trace]))]

link_trace = rule(
    implementation = _link_trace_impl,
    attrs = {"extension": attr.label(aspects = [_find_link], mandatory = True, doc = "A cc_binary with linkshared.")},
    doc = "NAME.txt: a line for each file, `archive(member)` for a member of an archive.",
)
