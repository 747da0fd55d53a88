# Totals.pm - prove's own report, and below it the slowest tests and the line
# `N passed, N failed`.
package Totals;

use strict;
use warnings;
use TAP::Formatter::Console;
use TAP::Formatter::File;

# A terminal sees progress; a file or a pipe gets whole lines.
our @ISA = -t STDOUT ? 'TAP::Formatter::Console' : 'TAP::Formatter::File';

my $SHOWN = 10;

# The lines of one.py, `SECONDS SECONDS-OF-CPU LABEL STATUS`, the slowest first.
sub noted_times {
    open my $file, '<', $ENV{TIMES} // return or return;
    return sort { $b->[0] <=> $a->[0] } map { [(split)[0 .. 2]] } <$file>;
}

sub print_slowest {
    my @times = noted_times();
    my $cpu = 0;

    return unless @times;
    $cpu += $_->[1] for @times;
    printf "%d tests took %.0f s of CPU; the slowest:\n", scalar @times, $cpu;
    printf "%8.1f s %8.1f s of CPU  %s\n", @$_
        for @times[0 .. ($#times < $SHOWN ? $#times : $SHOWN - 1)];
}

sub summary {
    my ($self, $aggregate, $interrupted) = @_;
    my $failed = $aggregate->failed;

    $self->SUPER::summary($aggregate, $interrupted);
    print_slowest();

    # A program that died, or broke its plan, is a failure also when all its lines are ok.
    for my $parser ($aggregate->parsers) {
        $failed++ if $parser->has_problems && !$parser->failed;
    }
    $failed++ if $interrupted || !$aggregate->total;
    printf "%d passed, %d failed\n", scalar $aggregate->passed, $failed;
}

1;
